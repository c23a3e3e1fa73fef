"""Computer Linker: controlled use of a person's computer for any MCP client."""

__version__ = "0.1.0"

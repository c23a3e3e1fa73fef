"""Connect an MCP client, and check that it works."""

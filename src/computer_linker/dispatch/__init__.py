"""The one road from a surface to an operation."""

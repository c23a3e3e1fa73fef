"""Reach this computer from elsewhere, MCP alone."""

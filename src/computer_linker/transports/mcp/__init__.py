"""MCP: the SDK is used only here, and only when the lean lane has no answer of its own."""

"""MCP: the SDK is used only here, and only for messages the fast path does not answer."""

"""HTTP: guards first, then authentication, then MCP, the JSON API and health."""

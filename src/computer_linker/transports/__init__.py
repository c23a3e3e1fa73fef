"""How clients reach the one road: MCP over stdio, socket and HTTP, the JSON API, and peers."""

"""Transports that carry client calls to the dispatcher: MCP over stdio, socket and HTTP, the JSON API, and peers."""

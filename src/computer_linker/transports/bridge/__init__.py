"""The desktop bridge: JSON-RPC 2.0 on a private socket of its own, one message a line."""

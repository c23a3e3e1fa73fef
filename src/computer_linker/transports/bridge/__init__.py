"""The desktop bridge: JSON-RPC 2.0 on a private socket of its own, one message a line."""

MAX_LINE = 1024 * 1024
"""Bytes of one message, which is one line."""

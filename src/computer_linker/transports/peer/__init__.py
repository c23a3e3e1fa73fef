"""Peers: paired machines that call each other's dispatchers over TLS 1.3 with pinned keys."""

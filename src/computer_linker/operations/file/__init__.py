"""Files inside a scope."""

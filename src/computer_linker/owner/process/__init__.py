"""Long-running processes that clients started."""

"""Other programs that can see and act, found on this machine, and our own desktop as the fallback."""

"""Long results of other operations."""

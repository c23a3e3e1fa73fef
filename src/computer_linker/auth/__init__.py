"""Who calls, and how they prove it."""

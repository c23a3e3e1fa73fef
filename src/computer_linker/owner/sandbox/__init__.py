"""The kernel boundary around commands."""

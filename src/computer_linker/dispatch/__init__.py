"""The dispatcher: the only call path from a surface to an operation."""

"""What the service and a child of the launcher both have to write the same way."""

SYNC = b"sync"
"""Not an order, but a file to be synced before the order that follows."""

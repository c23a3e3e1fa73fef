"""What the service and a child of the launcher both have to write the same way."""

SYNC = b"sync"
"""Not an order, but a file to be synced before the order that follows."""
STAGED_NAME = "staged"
"""Where a staged root lies in the file system of a sandbox program."""
MAX_DESCRIPTORS = 253
"""The most that one packet carries (the kernel's SCM_MAX_FD)."""

"""Constants shared by the service and the launcher's children."""

STAGED_NAME = "staged"
"""The name of a staged root in the root of a sandbox program."""
MAX_DESCRIPTORS = 253
"""The maximum in one packet (the kernel's SCM_MAX_FD)."""
LONG = b"long"
"""Replaces an order that is too long for a packet; the order is in the last descriptor."""
STAGE, ORDER = b"sO"
"""The first byte of a message to a waiting child: the root to stage for the order that follows, or the order."""

"""Constants shared by the service and the launcher's children."""

STAGED_NAME = "staged"
"""The name of a staged root in the root of a sandbox program."""
MAX_DESCRIPTORS = 253
"""The maximum in one packet (the kernel's SCM_MAX_FD)."""
LONG = b"long"
"""Replaces an order that is too long for a packet; the order is in the last descriptor."""
STAGE, ORDER = b"sO"
"""The first byte of a message to a waiting child: the root to stage for the order that follows, or the order."""
MOST_OPEN = 1 << 20
"""The most descriptors that the service and the launcher may have open, where the system lets them have more."""


def most_open(hard: int) -> tuple[int, int]:
    """The descriptor limits of the service with its launcher, and of commands, by the system's hard limit.

    The kernel counts descriptors that are being passed through sockets for all of a user's programs together, and refuses
    to pass more to a program whose limit they exceed. A command's limit is lower, so that its own cannot stop the service.
    """
    own = min(hard, MOST_OPEN)
    return own, own * 3 // 4

"""Tells whether an overlay still uses a view's folders. Run as a program: it enters namespaces of its own.

`python -m computer_linker.computer.local.linux.overlay_use EMPTY UPPER...` exits with 0 when none of the upper folders is in use.
EMPTY is an empty folder on the same file system.

An overlay exists as long as anything refers to it: a descriptor of any kind, a mapping, a working folder, one that is on its way
through a socket. With `index=on` the kernel refuses to mount a second one on its upper folder (EBUSY). The working folder that is
named here is the upper one, which it refuses next (EINVAL): so nothing is mounted, and no mark is left.
"""

import errno
import os
import sys
from pathlib import Path

from computer_linker.computer.local.linux.mount_calls import filesystem, own_namespaces
from computer_linker.computer.local.linux.overlay_probe import overlay


def main(empty: str, *uppers: str) -> int:
    """Check each folder, and first that this kernel reports one that is in use."""
    store, lower = Path(empty), Path(empty) / "lower"
    lower.mkdir()
    try:
        own_namespaces()
        control = overlay(str(lower), store)
        try:
            is_reported = not _is_free(store / "upper")
        finally:
            os.close(control)
        return 0 if is_reported and all(_is_free(Path(upper)) for upper in uppers) else 1
    except OSError as error:
        print(f"{error.strerror or error}", file=sys.stderr)  # the caller reads it
        return 1


def _is_free(upper: Path) -> bool:
    place = os.fsencode(upper)
    try:
        os.close(
            filesystem(
                b"overlay",
                (b"lowerdir", os.fsencode(upper.parent)),
                (b"upperdir", place),
                (b"workdir", place),
                (b"userxattr", None),
                (b"index", b"on"),
            )
        )
    except OSError as error:
        return error.errno == errno.EINVAL
    return False


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

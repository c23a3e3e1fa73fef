"""Tries whether folders can be covered by overlayfs as a view needs it. Run as a program: it enters namespaces of its own.

`python -m computer_linker.computer.local.linux.overlay_probe STORE FOLDER...` exits with 0 when all of them can.
STORE is an empty folder on the file system that takes the changes.
"""

import os
import sys
from pathlib import Path

from computer_linker.computer.local.linux.mount_calls import AT_FDCWD, filesystem, move, open_path, own_namespaces


def main(store: str, *folders: str) -> int:
    """Mount each folder, and check that what is removed, and made anew, in an overlay is marked in its upper folder."""
    place = Path(store)
    lower = place / "lower"
    (lower / "folder").mkdir(parents=True)
    (lower / "folder" / "inside").touch()
    (lower / "file").touch()
    (place / "at").mkdir()
    try:
        own_namespaces()
        for number, folder in enumerate(folders):
            os.close(overlay(folder, place / f"store-{number}"))
        move(overlay(str(lower), place / "store"), open_path(AT_FDCWD, os.fsencode(place / "at")))
        return 0 if _marks_changes(place / "at", place / "store" / "upper") else 1
    except OSError as error:
        print(f"{error.strerror or error}", file=sys.stderr)  # the caller reads it
        return 1


def overlay(lower: str, store: Path) -> int:
    """A folder covered by an overlay, as it is for a program in a view."""
    for name in ("upper", "work"):
        (store / name).mkdir(parents=True)
    lower_fd, store_fd = open_path(AT_FDCWD, os.fsencode(lower)), open_path(AT_FDCWD, os.fsencode(store))
    try:
        return filesystem(
            b"overlay",
            (b"lowerdir", b"/proc/self/fd/%d" % lower_fd),
            (b"upperdir", b"/proc/self/fd/%d/upper" % store_fd),
            (b"workdir", b"/proc/self/fd/%d/work" % store_fd),
            (b"userxattr", None),
        )
    finally:
        os.close(lower_fd)
        os.close(store_fd)


def _marks_changes(shown: Path, upper: Path) -> bool:
    (shown / "file").unlink()
    (shown / "folder" / "inside").unlink()
    (shown / "folder").rmdir()
    (shown / "folder").mkdir()
    is_gone = (upper / "file").is_char_device() and not any((shown / "folder").iterdir())
    return is_gone and os.getxattr(upper / "folder", "user.overlay.opaque") == b"y"


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

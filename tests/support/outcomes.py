"""Everything of a folder, for the comparison of two states of it, and of two runs of the same command."""

import os
import stat
from collections import defaultdict
from pathlib import Path
from typing import Any

_RANDOM = (".git/index", "/wt/index")
"""An index has the inodes and times of files in it."""
_SPARSE = 1 << 18


def digest(root: Path) -> dict[str, Any]:
    """Everything of every name: kind, mode, owner, links, times, attributes, content; the root's own too."""
    found = {}
    for path in (root, *sorted(root.rglob("*"))):
        about = path.lstat()
        content: Any = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        marks = {} if path.is_symlink() else {name: os.getxattr(path, name) for name in os.listxattr(path)}
        facts = (
            about.st_mode,
            about.st_uid,
            about.st_gid,
            about.st_nlink,
            about.st_mtime_ns,
            about.st_ctime_ns,
            about.st_ino,
        )
        found[str(path.relative_to(root))] = (facts, marks, content)
    return found


def outcome(root: Path, since_ns: int, random: tuple[str, ...] = _RANDOM) -> dict[str, Any]:
    """What a bare run and a kept one have in common: all but inode numbers and the moment of new times.

    Files with several names are compared by which names they have, and holes by whether there are any. The contents of files
    whose names end like one of `random` have inodes or times in them.
    """
    found: dict[str, Any] = {}
    names: defaultdict[int, set[str]] = defaultdict(set)
    for name, (facts, marks, content) in digest(root).items():
        mode, links, modified, inode = facts[0], facts[3], facts[4], facts[6]
        when = None if name == "." or modified >= since_ns else modified
        about = (root / name).lstat()
        is_sparse = stat.S_ISREG(mode) and about.st_size >= _SPARSE and about.st_blocks * 512 < about.st_size // 2
        if links > 1 and not stat.S_ISDIR(mode):
            names[inode].add(name)
        owner = facts[1:3]
        found[name] = (mode, owner, when, marks, is_sparse, None if name.endswith(random) else content)
    found["names of one file"] = sorted(sorted(each) for each in names.values())
    return found

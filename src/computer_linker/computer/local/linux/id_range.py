"""The host's user and group ids that stand for ids 1 to 65535 inside a superuser's sandbox.

They own nothing on the host and are given to no one else: what a sandboxed program makes for another user belongs to an id
that no account and no other container has.
"""

import os
from functools import lru_cache
from pathlib import Path

COUNT = 65_536
_FREE_FROM, _FREE_UNTIL = 1_879_048_192, 2_147_352_576
"""Between the ranges of systemd-nspawn and of foreign images (systemd.io/UIDS-GIDS); distributions assign no id here."""
_NEEDED = 1 << 6 | 1 << 7 | 1 << 31
"""CAP_SETGID, CAP_SETUID and CAP_SETFCAP: the kernel asks for them where a map has more than one's own id."""


@lru_cache(maxsize=1)
def other_ids() -> int | None:
    """The first id of the range; None where commands do not run as the superuser, or no range can be mapped."""
    if os.geteuid() != 0 or _capabilities() & _NEEDED != _NEEDED:
        return None
    import grp
    import pwd

    taken = [*_assigned("/etc/subuid"), *_assigned("/etc/subgid")]
    taken += [(account.pw_uid, 1) for account in pwd.getpwall()] + [(group.gr_gid, 1) for group in grp.getgrall()]
    for first in range(_FREE_FROM, _FREE_UNTIL, COUNT):
        if all(start + count <= first or start >= first + COUNT for start, count in taken):
            return first if all(_is_mapped(first, name) for name in ("uid_map", "gid_map")) else None
    return None


def _capabilities() -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("CapEff:")[2].split()[0], 16)


def _assigned(path: str) -> list[tuple[int, int]]:
    """The ranges that a file of subordinate ids (subuid(5)) assigns to accounts."""
    try:
        lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    fields = [line.split(":") for line in lines]
    return [
        (int(each[1]), int(each[2])) for each in fields if len(each) == 3 and each[1].isdigit() and each[2].isdigit()
    ]


def _is_mapped(first: int, name: str) -> bool:
    """Whether this process's own user namespace has the whole range: a container has only a few."""
    for line in Path("/proc/self", name).read_text(encoding="ascii").splitlines():
        start, _, count = (int(field) for field in line.split())
        if start <= first and first + COUNT <= start + count:
            return True
    return False

"""Resource usage of a process and its descendants, from /proc."""

import os
from itertools import islice
from pathlib import Path

from computer_linker.computer.facets.processes import Usage

_MOST = 2000
_LISTENING = "0A"


def usage_of(pid: int) -> Usage | None:
    """CPU time, memory and listening ports of a process tree; None once it has ended."""
    pids = _tree(pid)
    if not pids:
        return None
    ticks, pages = 0, 0
    for member in pids:
        fields = _text(f"/proc/{member}/stat").rpartition(")")[2].split()
        if len(fields) > 21:
            ticks += int(fields[11]) + int(fields[12])
            pages += int(fields[21])
    return Usage(
        pids=len(pids),
        cpu_s=round(ticks / os.sysconf("SC_CLK_TCK"), 2),
        memory_bytes=pages * os.sysconf("SC_PAGE_SIZE"),
        ports=tuple(sorted(_ports(pids))),
    )


def _tree(pid: int) -> list[int]:
    if not Path(f"/proc/{pid}").exists():
        return []
    found: list[int] = []
    waiting = [pid]
    while waiting and len(found) < _MOST:
        member = waiting.pop()
        found.append(member)
        waiting.extend(int(child) for child in _text(f"/proc/{member}/task/{member}/children").split())
    return found


def _ports(pids: list[int]) -> set[int]:
    """Ports the tree's sockets listen on, each read in the network namespace of its process."""
    ports: set[int] = set()
    tables: dict[str, dict[str, int]] = {}
    for pid in pids:
        inodes = _sockets(pid)
        if not inodes:
            continue
        space = _link(f"/proc/{pid}/ns/net")
        if space not in tables:
            tables[space] = {**_listening(f"/proc/{pid}/net/tcp"), **_listening(f"/proc/{pid}/net/tcp6")}
        ports |= {tables[space][inode] for inode in inodes if inode in tables[space]}
    return ports


def _sockets(pid: int) -> set[str]:
    try:
        names = list(islice(Path(f"/proc/{pid}/fd").iterdir(), _MOST))
    except OSError:
        return set()
    links = (_link(name) for name in names)
    return {link[8:-1] for link in links if link.startswith("socket:[")}


def _listening(path: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for line in _text(path).splitlines()[1:]:
        fields = line.split()
        if len(fields) > 9 and fields[3] == _LISTENING:
            found[fields[9]] = int(fields[1].rpartition(":")[2], 16)
    return found


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _link(path: str | Path) -> str:
    try:
        return str(Path(path).readlink())
    except OSError:
        return ""

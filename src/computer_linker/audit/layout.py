"""The files of the history folder: segments of the journal, the head of the chain, the names of both."""

import json
from dataclasses import dataclass
from pathlib import Path

from computer_linker.audit.faults import AuditDamaged
from computer_linker.audit.secret import Key
from computer_linker.system import os, sync

GENESIS = b"0" * 32
"""What the first record is linked to."""
SEAL = 32
MAX_LINE = 16_384
"""No line is longer: every field of a record has its cap."""
HEAD_BYTES = 512
PRIVATE = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
"""Flags of every file opened here: not for children, and bytes as they are. Windows has only the second."""


@dataclass(slots=True)
class Head:
    """The end of the chain: the last record's number and seal, and the byte after it in its segment."""

    number: int
    seal: bytes
    segment: int
    offset: int
    synced: int
    """Records up to this number survive a power cut."""
    boot: str
    """The boot id of the system that wrote this."""


def write_head(handle: int, key: Key, head: Head) -> None:
    """Write the head in place: it fits a disk sector, so it is never half written."""
    body = (
        f'{{"number":{head.number},"seal":"{head.seal.decode()}","segment":{head.segment},"offset":{head.offset},'
        f'"synced":{head.synced},"boot":"{head.boot}"}}'
    ).encode("ascii")
    line = key.seal(b"head", body) + b" " + body
    write_at(handle, line.ljust(HEAD_BYTES - 1) + b"\n", 0)


def read_head(handle: int, key: Key) -> Head | None:
    """Read the stored head; None before the first record. Raises AuditDamaged for one that fails its seal."""
    line = read_at(handle, HEAD_BYTES, 0).strip()
    if not line:
        return None
    body = opened(line, key, b"head")
    if body is None:
        raise damaged("its head was changed")
    fields = json.loads(body)
    fields["seal"] = fields["seal"].encode("ascii")
    return Head(**fields)


def opened(line: bytes, key: Key, previous: bytes) -> bytes | None:
    """The body of a sealed line; None when any byte of it is not what was sealed after `previous`."""
    body = line[SEAL + 1 :]
    if line[SEAL : SEAL + 1] != b" " or key.seal(previous, body) != line[:SEAL]:
        return None
    return body


def segment_path(folder: Path, segment: int) -> Path:
    """The file of one segment, named by the number of its first record; a file of the reserve has a negative number."""
    return folder / (f"journal-{segment:012}.jsonl" if segment >= 0 else f"kept-{-segment:012}.jsonl")


def list_segments(folder: Path) -> list[int]:
    """The numbers of the segments that are there, oldest first."""
    return sorted(int(path.stem.removeprefix("journal-")) for path in folder.glob("journal-*.jsonl"))


def damaged(what: str) -> AuditDamaged:
    """The one error for a history that was changed behind the service's back."""
    return AuditDamaged(
        f"The history was changed or cut outside this service: {what}.",
        hint="`computer-linker history verify` names the first bad record. "
        "Move the audit folder aside to begin a new history.",
    )


def sync_folder(folder: Path) -> None:
    """Sync a folder, so that a new file's name survives a power cut, where the system supports it."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        sync(handle)
    finally:
        os.close(handle)


def _seek_and_read(handle: int, size: int, offset: int) -> bytes:
    os.lseek(handle, offset, os.SEEK_SET)
    return os.read(handle, size)


def _seek_and_write(handle: int, data: bytes, offset: int) -> int:
    os.lseek(handle, offset, os.SEEK_SET)
    return os.write(handle, data)


# Windows has neither; there each handle is used by one thread, so seeking first is safe.
read_at = getattr(os, "pread", _seek_and_read)
write_at = getattr(os, "pwrite", _seek_and_write)

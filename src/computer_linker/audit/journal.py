"""The journal: append-only files of sealed lines, each linked to the one before; the head is kept apart."""

import json
import os
import threading
from dataclasses import dataclass
from pathlib import Path

from computer_linker.audit import lock
from computer_linker.audit.faults import AuditDamaged, unwritable
from computer_linker.audit.secret import Key, load_key

GENESIS = b"0" * 32
SEAL = 32
MAX_LINE = 8192
"""No record is longer: every field has its cap."""
_SEGMENT_BYTES = 8 << 20
_HEAD_BYTES = 512
_datasync = getattr(os, "fdatasync", os.fsync)


@dataclass(slots=True)
class Head:
    """Where the chain ends: the last record's number and seal, and the end of its segment."""

    number: int
    seal: bytes
    segment: int
    offset: int
    synced: int
    boot: str


class Journal:
    """Appends sealed records. Safe for several processes; within one process, for one thread."""

    def __init__(self, folder: Path, segment_bytes: int = _SEGMENT_BYTES) -> None:
        self.folder = folder
        self.segment_bytes = segment_bytes
        self._boot = boot_id()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.key: Key = load_key(folder / "key")
        self._lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._head_file = os.open(folder / "head", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._file = -1
        self._held = threading.Lock()
        """Held while the open segment is being synced or replaced, which happen in different threads."""
        self.synced = 0
        lock.take(self._lock)
        try:
            self.head = self._recover()
        finally:
            lock.give(self._lock)

    def append(self, bodies: list[str]) -> int:
        """Add records in one write; the last one's number. Raises AuditUnavailable, having added none."""
        lock.take(self._lock)
        try:
            self._catch_up()
            if self.head.offset >= self.segment_bytes:
                self._rotate()
            return self._write(bodies)
        except OSError as error:
            raise unwritable(error) from error
        finally:
            lock.give(self._lock)

    def sync(self) -> None:
        """Make everything appended so far survive a power cut. Callable from another thread."""
        with self._held:
            number = self.head.number
            _datasync(self._file)
            self.synced = number

    def close(self) -> None:
        """Let go of the files."""
        for handle in (self._file, self._head_file, self._lock):
            if handle >= 0:
                os.close(handle)
        self._file = self._head_file = self._lock = -1

    def path_of(self, segment: int) -> Path:
        """The file of one segment, named by the number of its first record."""
        return segment_path(self.folder, segment)

    def _write(self, bodies: list[str]) -> int:
        head = self.head
        number, seal, seal_of = head.number, head.seal, self.key.seal
        lines = bytearray()
        for body in bodies:
            number += 1
            line = f'{{"n":{number},{body}}}'.encode("ascii")
            seal = seal_of(seal, line)
            lines += seal + b" " + line + b"\n"
        try:
            written = os.write(self._file, lines)
        except OSError:
            os.ftruncate(self._file, head.offset)
            raise
        if written != len(lines):
            os.ftruncate(self._file, head.offset)
            raise OSError(28, "No space left on device")
        head.number, head.seal = number, seal
        head.offset += written
        self._keep_head()
        return number

    def _keep_head(self) -> None:
        head = self.head
        head.synced = self.synced
        body = (
            f'{{"number":{head.number},"seal":"{head.seal.decode()}","segment":{head.segment},"offset":{head.offset},'
            f'"synced":{head.synced},"boot":"{head.boot}"}}'
        ).encode("ascii")
        line = self.key.seal(b"head", body) + b" " + body
        os.pwrite(self._head_file, line.ljust(_HEAD_BYTES - 1) + b"\n", 0)

    def _catch_up(self) -> None:
        # Every append and every rotation by another process changes the size of the segment we hold.
        if os.fstat(self._file).st_size != self.head.offset:
            self.head = self._recover()

    def _rotate(self) -> None:
        self._write([f'"kind":"continued","segment":{self.head.number + 2}'])
        _datasync(self._file)
        self._open_segment(self.head.number + 1, create=True)
        self.head.segment, self.head.offset = self.head.number + 1, 0
        self._write(['"kind":"segment"'])

    def _open_segment(self, segment: int, *, create: bool) -> None:
        flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        fresh = os.open(self.path_of(segment), flags, 0o600)
        if create:
            sync_folder(self.folder)
        with self._held:
            if self._file >= 0:
                os.close(self._file)
            self._file = fresh

    def _recover(self) -> Head:
        """Find the end of the chain: the head, and what was appended before a crash kept it from moving."""
        head = read_head(self._head_file, self.key)
        segments = list_segments(self.folder)
        if head is None:
            return self._begin(segments)
        if head.segment not in segments:
            raise damaged(f"the file of segment {head.segment} is missing")
        self._open_segment(head.segment, create=False)
        size = os.fstat(self._file).st_size
        if size < head.offset:
            raise damaged(f"the records before number {head.number} end early")
        last = os.pread(self._file, 4096, max(0, head.offset - 4096)).rpartition(b"\n")[0].rpartition(b"\n")[2]
        if head.offset and last[:SEAL] != head.seal and len(last) < 4096:
            raise damaged(f"record {head.number} is not the one that was written")
        self.head = head
        self._follow(size)
        head.boot = self._boot
        self._keep_head()
        return head

    def _begin(self, segments: list[int]) -> Head:
        if segments and self.path_of(segments[0]).stat().st_size:
            raise damaged("its head is missing")
        self.head = Head(0, GENESIS, 1, 0, 0, self._boot)
        self._open_segment(1, create=True)
        self._write(['"kind":"segment"'])
        self.sync()
        return self.head

    def _follow(self, size: int) -> None:
        head = self.head
        tail = os.pread(self._file, size - head.offset, head.offset)
        complete, newline, torn = tail.rpartition(b"\n")
        for line in complete.split(b"\n") if newline else []:
            body = line[SEAL + 1 :]
            if self.key.seal(head.seal, body) != line[:SEAL]:
                raise damaged(f"record {head.number + 1} is not linked to the one before it")
            head.number, head.seal = head.number + 1, line[:SEAL]
            head.offset += len(line) + 1
            fields = json.loads(body)
            if fields["kind"] == "continued":
                self._enter(int(fields["segment"]))
                return
        if torn:
            # A line without its end was never acknowledged: the write was cut short.
            os.ftruncate(self._file, head.offset)

    def _enter(self, segment: int) -> None:
        self.head.segment, self.head.offset = segment, 0
        self._open_segment(segment, create=True)
        size = os.fstat(self._file).st_size
        if size:
            self._follow(size)
        if not self.head.offset:
            self._write(['"kind":"segment"'])


def read_head(handle: int, key: Key) -> Head | None:
    """The head as it was last kept; None before the first record. Raises AuditDamaged for one not ours."""
    line = os.pread(handle, _HEAD_BYTES, 0).strip()
    if not line:
        return None
    body = line[SEAL + 1 :]
    if key.seal(b"head", body) != line[:SEAL]:
        raise damaged("its head was changed")
    fields = json.loads(body)
    return Head(
        fields["number"],
        fields["seal"].encode("ascii"),
        fields["segment"],
        fields["offset"],
        fields["synced"],
        fields["boot"],
    )


def _line_before(handle: int, offset: int) -> bytes:
    if not offset:
        return GENESIS
    block = os.pread(handle, MAX_LINE, max(0, offset - MAX_LINE))
    return block[:-1].rpartition(b"\n")[2]


def segment_path(folder: Path, segment: int) -> Path:
    """The file of one segment."""
    return folder / f"journal-{segment:012}.jsonl"


def list_segments(folder: Path) -> list[int]:
    """The numbers of the segments that are there, oldest first."""
    return sorted(int(path.stem.removeprefix("journal-")) for path in folder.glob("journal-*.jsonl"))


def damaged(what: str) -> AuditDamaged:
    """The one error for a history that was changed behind the service's back."""
    return AuditDamaged(
        f"The history was changed or cut outside this service: {what}.",
        hint="`computer-linker history verify` names the first bad record. "
        "Move the history folder aside to begin a new one.",
    )


def sync_folder(folder: Path) -> None:
    """Make a new file's name survive a power cut, where the system can."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def boot_id() -> str:
    """Tells one run of the operating system from the next; empty where there is no such id."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return ""

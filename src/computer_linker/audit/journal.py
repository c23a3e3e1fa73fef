"""The journal: append-only files of sealed lines, each linked to the one before; the head is a separate file."""

import errno
import json
import logging
import threading
from datetime import UTC, datetime
from pathlib import Path

from computer_linker.audit.ballast import FULL, Ballast
from computer_linker.audit.faults import AuditDamaged, AuditUnavailable, unwritable
from computer_linker.audit.layout import (
    GENESIS,
    MAX_LINE,
    PRIVATE,
    SEAL,
    Head,
    damaged,
    list_segments,
    read_at,
    read_head,
    segment_path,
    sync_folder,
    write_head,
)
from computer_linker.audit.reading import BrokenLink, lines_after
from computer_linker.audit.retention import ended, first_kept
from computer_linker.audit.secret import load_key
from computer_linker.system import boot_id, lock, os, sync_data, unlock

log = logging.getLogger(__name__)

FORMAT = 1
SEGMENT_BYTES = 8 << 20


class AuditJournal:
    """Appends sealed records. Safe for several processes; not thread-safe within one."""

    def __init__(self, folder: Path, machine: str = "", segment_bytes: int = SEGMENT_BYTES) -> None:
        self.folder = folder
        self.segment_bytes = segment_bytes
        self._machine = json.dumps(machine[:128])
        self._boot = boot_id()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.key = load_key(folder / "key")
        self.ballast = Ballast(folder)
        flags = os.O_RDWR | os.O_CREAT | PRIVATE
        self._lock = os.open(folder / "lock", flags, 0o600)
        self._head_file = os.open(folder / "head", flags, 0o600)
        self._file = -1
        self._is_locked = self._is_current = self._head_is_behind = False
        self._held = threading.Lock()
        """Held while the open segment is synced or replaced, which happen in different threads."""
        self.head = Head(0, GENESIS, 1, 0, 0, self._boot)
        lock(self._lock)
        try:
            self._recover()
        except (BrokenLink, AuditDamaged):
            self.close()
            raise
        finally:
            if self._lock >= 0:
                unlock(self._lock)

    def append(self, bodies: list[str], *, keep_lock: bool = False, is_urgent: bool = False) -> int:
        """Append records in one write; return the last one's number. Raises AuditUnavailable, having added none.

        With `keep_lock` the lock stays held for the next append; the caller soon calls `release`. Urgent ones use the ballast
        on a full disk.
        """
        if not self._is_locked:
            lock(self._lock)
            self._is_locked = True
        try:
            while True:
                try:
                    return self._append(bodies, with_head=not keep_lock)
                except OSError as error:
                    if not is_urgent or error.errno not in FULL or not self.ballast.give_up():
                        raise
                    self._is_current = False
        except OSError as error:
            keep_lock = False
            raise unwritable(error) from error
        except AuditDamaged as error:
            keep_lock = False
            raise AuditUnavailable(error.message) from error
        finally:
            if not keep_lock:
                self.release()

    def _append(self, bodies: list[str], *, with_head: bool) -> int:
        # Every append and every rotation by another process changes the size of the segment we hold.
        if not self._is_current:
            if os.fstat(self._file).st_size != self.head.offset:
                self._recover()
            self._is_current = True
        if self.head.offset >= self.segment_bytes:
            self._rotate()
        return self._write(bodies if self.head.offset else [self._heading(), *bodies], with_head=with_head)

    def release(self) -> None:
        """Write the head and release the lock for other processes."""
        if not self._is_locked:
            return
        try:
            if self._head_is_behind:
                self._head_is_behind = False
                write_head(self._head_file, self.key, self.head)
        except OSError as error:
            # The records are there; the next append finds them after the head and moves it.
            log.warning("the head of the history could not be kept: %s", error)
        finally:
            self._is_locked = self._is_current = False
            unlock(self._lock)

    def sync(self) -> None:
        """Sync everything appended so far to disk. Callable from another thread."""
        with self._held:
            number = self.head.number
            sync_data(self._file)
            self.head.synced = number

    def rotate_if_older(self, before: str | None, pruned_by: str = "") -> None:
        """Begin a new segment when the newest operation except `pruned_by` is older, so that all before it can be removed."""
        self.release()
        lock(self._lock)
        try:
            if os.fstat(self._file).st_size != self.head.offset:
                self._recover()
            if before is None or not self.head.offset:
                return
            if ended(self.folder, self.head.segment, pruned_by) < before:
                self._rotate()
                self._write([self._heading()])
        finally:
            unlock(self._lock)

    def close(self) -> None:
        """Close the files."""
        for handle in (self._file, self._head_file, self._lock):
            if handle >= 0:
                os.close(handle)
        self._file = self._head_file = self._lock = -1

    def _heading(self) -> str:
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return f'"kind":"segment","format":{FORMAT},"at":"{now}","machine":{self._machine}'

    def _write(self, bodies: list[str], *, with_head: bool = True) -> int:
        head = self.head
        number, seal, seal_of = head.number, head.seal, self.key.seal
        lines = bytearray()
        for body in bodies:
            number += 1
            line = f'{{"n":{number},{body}}}'.encode("ascii")
            seal = seal_of(seal, line)
            lines += b"%b %b\n" % (seal, line)
        before = (head.number, head.seal, head.offset)
        self._all_or_none(lines)
        head.number, head.seal, head.offset = number, seal, head.offset + len(lines)
        self._head_is_behind = not with_head
        if not with_head:
            return number
        try:
            write_head(self._head_file, self.key, head)
        except OSError:
            head.number, head.seal, head.offset = before
            os.ftruncate(self._file, head.offset)
            raise
        return number

    def _all_or_none(self, lines: bytearray) -> None:
        try:
            if os.write(self._file, lines) == len(lines):
                return
            failure = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            failure = error
        # Should this fail too, the next append finds the file longer than it should be, and recovers.
        os.ftruncate(self._file, self.head.offset)
        raise failure

    def _rotate(self) -> None:
        following = self.head.number + 2
        path = segment_path(self.folder, following)
        handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | PRIVATE, 0o600)
        try:
            if os.fstat(handle).st_size:
                raise damaged(f"there is a file for record {following} already")
            self._write([f'"kind":"continued","segment":{following}'])
        except (OSError, AuditDamaged):
            os.close(handle)
            raise
        # From here on the chain continues in the new file, whatever else fails.
        with self._held:
            old, self._file = self._file, handle
            self.head.segment, self.head.offset = following, 0
        try:
            sync_data(old)
        finally:
            os.close(old)
        sync_folder(self.folder)

    def _hold(self, handle: int) -> None:
        with self._held:
            if self._file >= 0:
                os.close(self._file)
            self._file = handle

    def _open_segment(self, segment: int) -> int:
        handle = os.open(segment_path(self.folder, segment), os.O_RDWR | os.O_APPEND | os.O_CREAT | PRIVATE, 0o600)
        self._hold(handle)
        return os.fstat(handle).st_size

    def _recover(self) -> None:
        """Find the end of the chain: the head, and records appended after it before a crash."""
        head = read_head(self._head_file, self.key)
        if head is None:
            self._begin()
            return
        segments = list_segments(self.folder)
        if head.segment not in segments and head.offset:
            raise damaged(f"the file with record {head.number} is missing")
        size = self._open_segment(head.segment)
        self.head = head
        if size < head.offset:
            self._rewind()
        elif head.offset:
            self._follow(head.offset - len(self._last_line()) - 1, size)
        head.boot = self._boot
        for stray in segments:
            if stray > self.head.segment and not segment_path(self.folder, stray).stat().st_size:
                segment_path(self.folder, stray).unlink()
        write_head(self._head_file, self.key, self.head)

    def _last_line(self) -> bytes:
        offset = self.head.offset
        block = read_at(self._file, min(offset, MAX_LINE), max(0, offset - MAX_LINE))
        line = block[:-1].rpartition(b"\n")[2]
        if line[:SEAL] != self.head.seal:
            raise damaged(f"record {self.head.number} is not the one that was written")
        return line

    def _begin(self) -> None:
        if any(segment != 1 for segment in list_segments(self.folder)):
            raise damaged("its head is missing")
        size = self._open_segment(1)
        self.head = Head(0, GENESIS, 1, 0, 0, self._boot)
        self._follow(0, size)
        # One append may have been cut off before it could keep the first head; no more than one.
        if self.head.number > 100:
            raise damaged("its head is missing")

    def _follow(self, start: int, size: int) -> None:
        """Read the lines from `start`; the one that ends at the head again, because it may link to a new segment."""
        head = self.head
        complete, newline, torn = read_at(self._file, size - start, start).rpartition(b"\n")
        for line in complete.split(b"\n") if newline else []:
            body = line[SEAL + 1 :]
            if line[:SEAL] != head.seal:
                if self.key.seal(head.seal, body) != line[:SEAL]:
                    raise damaged(f"record {head.number + 1} is not linked to the one before it")
                head.number, head.seal, head.offset = head.number + 1, line[:SEAL], head.offset + len(line) + 1
            fields = json.loads(body)
            if fields["kind"] == "continued":
                head.segment, head.offset = int(fields["segment"]), 0
                self._follow(0, self._open_segment(head.segment))
                return
        if torn:
            # A line without its end was never acknowledged: the write was cut short.
            os.ftruncate(self._file, head.offset)

    def _rewind(self) -> None:
        """Accept that a power cut lost records never reported as durable; anything more is damage."""
        head, place = self.head, first_kept(self.folder, self.key)
        try:
            for line in lines_after(self.folder, self.key, place, (head.segment, os.fstat(self._file).st_size)):
                place = line.after
        except BrokenLink as broken:
            if broken.number <= head.synced:
                raise damaged(f"record {broken.number}: {broken.problem}") from None
        if place.number < head.synced or (head.boot == self._boot and self._boot):
            raise damaged(f"the records after number {place.number} are gone")
        lost = head.number - place.number
        os.ftruncate(self._file, place.offset)
        self.head = Head(place.number, place.seal, place.segment, place.offset, place.number, self._boot)
        self._write([f'"kind":"lost","records":{lost},"reason":"power"'])

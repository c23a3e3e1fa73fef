"""The undo journal: one line before a change and one after it, and a private folder of what was replaced.

A line is written to the kernel before the change is made, so it survives a kill of the service; a batch of several changes is
also synced to disk, because after a power cut the journal must restore a half-made batch.
"""

import errno
import json
import secrets
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

from computer_linker import system
from computer_linker.computer.facets.files import Inverse
from computer_linker.errors import ExecutionFailed, NotFound
from computer_linker.model.ids import SHORT
from computer_linker.model.paths import RootedPath
from computer_linker.model.principal import Principal, account_of
from computer_linker.services import Services
from computer_linker.system import os
from computer_linker.undo.store import KeptFiles

MAX_ENTRIES = 2000
MAX_BYTES = 1 << 30
LAST = "last"
_COMPACT_AT = 3 * MAX_ENTRIES
_FILE = "journal.jsonl"


@dataclass(slots=True)
class Record:
    """One operation's changes."""

    operation_id: str
    scope_id: str
    principal: str
    """Who made them; empty in a journal of an older version, where only the owner can undo them."""
    op: str
    steps: list[Inverse]
    leftovers: list[dict[str, Any]] = field(default_factory=list)
    state: Literal["begun", "done"] = "begun"

    @property
    def size(self) -> int:
        return sum(step.get("bytes", 0) for step in self.steps)

    @property
    def kept(self) -> list[str]:
        return [step["kept"] for step in self.steps if "kept" in step]

    def concerns(self, path: RootedPath) -> bool:
        """True when a step concerns this path, something beneath it, or a folder above it that was moved or removed."""
        wanted = list(path.parts)
        for step in self.steps:
            for root, changed in ((step["root"], step["path"]), (step.get("toRoot"), step.get("to"))):
                if root != path.root or changed is None:
                    continue
                if changed[: len(wanted)] == wanted:
                    return True
                if wanted[: len(changed)] == changed and step["do"] not in ("mkdir", "rmdir"):
                    return True
        return False

    def to_line(self) -> bytes:
        value = {
            "id": self.operation_id, "scope": self.scope_id, "by": self.principal, "op": self.op, "state": self.state,
            "steps": self.steps, "leftovers": self.leftovers, "at": int(time.time()),
        }  # fmt: skip
        return json.dumps(value, separators=(",", ":")).encode() + b"\n"


class Entry:
    """Stores what one operation replaces: pass it to `files.change`, or store files before a program changes them."""

    def __init__(self, journal: "UndoJournal", record: Record) -> None:
        self._journal = journal
        self._record = record
        self.is_committed = False

    @property
    def folder(self) -> int:
        return self._journal.kept.folder

    @property
    def room(self) -> int:
        return self._journal.max_bytes // 2

    def new_name(self) -> str:
        return secrets.token_hex(16)

    def begun(self, steps: list[Inverse], leftovers: list[dict[str, Any]]) -> None:
        """Record how to undo a change, before it is made."""
        self._record.steps, self._record.leftovers = steps, leftovers
        self._journal.append(self._record, sync=len(steps) > 1)

    def done(self) -> None:
        """Record that the change was made."""
        self._record.state = "done"
        self.is_committed = True
        self._journal.close_entry(self._record)

    def void(self) -> None:
        """Record that the change was not made."""
        self._journal.forget(self._record.operation_id)

    def commit(self, steps: list[Inverse]) -> None:
        """Record how to undo a finished change (of a program, whose files were stored beforehand)."""
        self.begun(steps, [])
        self.done()


class UndoJournal:
    """The newest changes, by operation id. Past the limits, the principal with the most loses its oldest."""

    def __init__(self, folder: Path, *, max_entries: int = MAX_ENTRIES, max_bytes: int = MAX_BYTES) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.max_entries = max_entries
        # Evicting counts what every principal holds, so it is done for several entries at a time.
        self._slack = max_entries // 20
        self.max_bytes = max_bytes
        self.kept = KeptFiles.open(folder / "kept")
        self._path = folder / _FILE
        self._records: OrderedDict[str, Record] = OrderedDict()
        self._names: Counter[str] = Counter()
        """How many records refer to each stored file."""
        self._bytes = 0
        self._lines = 0
        self._pending = b""
        self._load()
        self._file = self._opened()
        self._end_last_line()
        self.is_recovered = not any(record.state == "begun" for record in self._records.values())

    @classmethod
    def open(cls, services: Services) -> Self:
        return cls(services.home / "undo")

    async def aclose(self) -> None:
        os.close(self._file)
        self.kept.close()

    def begin(self, operation_id: str, scope_id: str, principal: str, op: str = "") -> Entry:
        """Start to record what this operation of this principal replaces."""
        return Entry(self, Record(operation_id, scope_id, principal, op, []))

    def find(self, operation_id: str, scope_id: str, caller: Principal) -> Record:
        """Find how to undo this operation, by its id or the end of that; `last` is the caller's newest, then the one before.

        Raises NotFound, with the same message, when it is unknown, was evicted, or is another principal's.
        """
        known = self._records
        found = [known[operation_id]] if operation_id in known else []
        if not found and len(operation_id) >= SHORT:
            ending = operation_id.upper()
            meant = [one for one in known.values() if one.operation_id.endswith(ending) and caller.owns(one.principal)]
            found = meant if len(meant) == 1 else []
        if operation_id == LAST:
            # The owner's own, too: `last` must not select what a client just did.
            found = [record for record in self._newest() if record.principal == caller.id]
        return self._first(found, scope_id, caller, operationId=operation_id[:64])

    def find_change_of(self, path: RootedPath, scope_id: str, caller: Principal) -> Record:
        """Find the caller's newest change of this path, of something in it, or of a folder around it; the owner's of any."""
        found = [record for record in self._newest() if caller.owns(record.principal) and record.concerns(path)]
        return self._first(found, scope_id, caller, path=path.shown)

    def _newest(self) -> Iterator[Record]:
        """Changes the newest first, without the undos: those are named by their id."""
        return (record for record in reversed(self._records.values()) if record.op != "file.undo")

    def _first(self, found: Iterable[Record], scope_id: str, caller: Principal, **asked: str) -> Record:
        record = next((one for one in found if one.scope_id == scope_id and one.state == "done" and one.steps), None)
        if record is None or not caller.owns(record.principal):
            raise NotFound(
                "There is nothing to take back for this: it changed no file in this scope, was taken back already, is too "
                "long ago, or was a command in a large folder without `undo: true`.",
                **{name: value for name, value in asked.items() if value != LAST},
            )
        return record

    def steps_of(self, operation_id: str) -> list[Inverse]:
        """Return the steps that undo this operation, if it can be undone."""
        record = self._records.get(operation_id)
        return [] if record is None else record.steps

    def undoable(self) -> list[Record]:
        """Return every change that can be undone, of any principal, the oldest first."""
        return [record for record in self._records.values() if record.state == "done" and record.steps]

    def has_kept(self, kept: str, scope_id: str, caller: Principal, place: tuple[str, Sequence[str]]) -> bool:
        """Return True for a file that an operation of this caller in this scope stored of exactly this path (root and parts)."""
        wanted = (kept, place[0], list(place[1]))
        mine = (record for record in self._records.values() if caller.owns(record.principal))
        records = (record for record in mine if record.scope_id == scope_id)
        return any((step.get("kept"), step["root"], step["path"]) == wanted for one in records for step in one.steps)

    def unfinished(self) -> list[Record]:
        """Return changes that were in progress when the service died, the newest first."""
        return [record for record in reversed(self._records.values()) if record.state == "begun"]

    def append(self, record: Record, *, sync: bool) -> None:
        self._write(record.to_line())
        if sync:
            system.sync(self._file)
        self._put(record)
        self._lines += 1

    def close_entry(self, record: Record) -> None:
        self._write_later(b'{"done":"' + record.operation_id.encode() + b'"}\n')
        if len(self._records) > self.max_entries + self._slack or self._bytes > self.max_bytes:
            self._evict()
        if self._lines > _COMPACT_AT + len(self._records):
            self._compact()

    def forget(self, operation_id: str, *, keeps_files: bool = True) -> None:
        """Drop a record. Its stored files stay when another change took them over."""
        record = self._records.pop(operation_id, None)
        if record is None:
            return
        self._bytes -= record.size
        self._uncount(record)
        self._write_later(b'{"void":"' + operation_id.encode() + b'"}\n')
        if not keeps_files:
            # An undo stores files under the names of those that it put back.
            self.kept.drop(name for name in record.kept if name not in self._names)

    def refit(self, operation_id: str) -> None:
        """Let older changes fit the files that this undo put back.

        A file that was stored as a copy (on another file system than the folder) comes back with another inode; with the same
        size and time it is the state that the change before it left.
        """
        older: dict[tuple[str, tuple[str, ...]], tuple[Record, Inverse]] = {}
        for record in reversed(self._records.values()):
            for step in record.steps if record.operation_id != operation_id else ():
                if "after" in step:
                    older.setdefault((step["root"], tuple(step["path"])), (record, step))
        for step in self.steps_of(operation_id):
            after, found = step.get("after"), older.get((step["root"], tuple(step["path"])))
            if after is None or found is None or found[1]["after"] == after or found[1]["after"][2:] != after[2:]:
                continue
            line = {"fits": found[0].operation_id, "root": step["root"], "path": step["path"], "after": after}
            apply_line(self._records, line)
            self._write_later(json.dumps(line, separators=(",", ":")).encode() + b"\n")

    def _write(self, line: bytes) -> None:
        """Write a whole line or none, so that a full disk never joins two of them."""
        size = os.fstat(self._file).st_size
        data = self._pending + line
        try:
            if os.write(self._file, data) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            os.ftruncate(self._file, size)
            raise ExecutionFailed(
                "The undo journal cannot be written, so nothing was changed. Free space for the service's state folder."
            ) from error
        self._pending = b""

    def _write_later(self, line: bytes) -> None:
        """Write a fact that already holds; if that fails it is written with the next line."""
        self._lines += 1
        try:
            self._write(line)
        except ExecutionFailed:
            self._pending += line

    def _put(self, record: Record) -> None:
        old = self._records.pop(record.operation_id, None)
        self._bytes += record.size - (old.size if old else 0)
        self._names.update(record.kept)
        if old is not None:
            self._uncount(old)
        self._records[record.operation_id] = record

    def _uncount(self, record: Record) -> None:
        for name in record.kept:
            self._names[name] -= 1
            if not self._names[name]:
                del self._names[name]

    def _evict(self) -> None:
        """Evict the oldest of the principal with the most, so that none evicts another's."""
        held: dict[str, deque[Record]] = {}
        for record in self._records.values():
            if record.state == "done":
                held.setdefault(account_of(record.principal), deque()).append(record)
        sizes = Counter({who: sum(record.size for record in mine) for who, mine in held.items()})
        while (is_many := len(self._records) > self.max_entries) or self._bytes > self.max_bytes:
            most = max(held, key=lambda who: len(held[who]) if is_many else sizes[who], default=None)
            if most is None:
                return
            oldest = held[most].popleft()
            sizes[most] -= oldest.size
            if not held[most]:
                del held[most]
            self.forget(oldest.operation_id, keeps_files=False)

    def _load(self) -> None:
        for value in lines_of(self._path):
            self._lines += 1
            apply_line(self._records, value)
        self._bytes = sum(record.size for record in self._records.values())
        self._names.update(name for record in self._records.values() for name in record.kept)
        self.kept.drop_others(set(self._names))

    def _opened(self) -> int:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        return os.open(self._path, flags, 0o600)

    def _end_last_line(self) -> None:
        """Terminate a line that a crash cut short, so that the next one is separate."""
        with self._path.open("rb") as file:
            if file.seek(0, os.SEEK_END) and file.seek(-1, os.SEEK_END) is not None and file.read(1) != b"\n":
                os.write(self._file, b"\n")

    def _compact(self) -> None:
        """Rewrite the file with current records only, and replace the old one."""
        draft = self._path.with_suffix(".new")
        draft.unlink(missing_ok=True)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, b"".join(record.to_line() for record in self._records.values()))
            system.sync(descriptor)
        finally:
            os.close(descriptor)
        draft.replace(self._path)
        os.close(self._file)
        self._file = self._opened()
        self._lines = len(self._records)


def apply_line(records: MutableMapping[str, Record], value: dict[str, Any]) -> None:
    """Apply one line of the journal to the records so far."""
    if "done" in value and value["done"] in records:
        records[value["done"]].state = "done"
    elif "void" in value:
        records.pop(value["void"], None)
    elif "fits" in value and value["fits"] in records:
        step = _step_of(records[value["fits"]], value["root"], value["path"])
        if step is not None:
            step["after"] = value["after"]
    elif "id" in value:
        state: Literal["begun", "done"] = "done" if value.get("state") == "done" else "begun"
        # A record that comes again is the newest.
        records.pop(value["id"], None)
        records[value["id"]] = Record(
            value["id"], value["scope"], value.get("by", ""), value["op"], value["steps"], value["leftovers"], state
        )


def _step_of(record: Record, root: str, path: list[str]) -> Inverse | None:
    """The step of this record that expects a state of this path, if there is one."""
    return next((one for one in record.steps if (one["root"], one["path"]) == (root, path) and "after" in one), None)


def lines_of(path: Path) -> Iterable[dict[str, Any]]:
    """The journal's lines; one that a crash cut short is the last, and is left out."""
    if not path.exists():
        return
    with path.open("rb") as file:
        for line in file:
            try:
                value = json.loads(line)
            except ValueError:
                continue
            if isinstance(value, dict):
                yield value


# Reads the undo journal without opening it for writing: for a look at what a change replaced.


def read_record(folder: Path, operation_id: str) -> Record | None:
    """The changes of one operation; None when they are not kept, or were taken back."""
    return records(folder).get(operation_id)


def records(folder: Path) -> dict[str, Record]:
    """Every change that can be undone, the oldest first."""
    found: dict[str, Record] = {}
    for value in lines_of(folder / _FILE):
        apply_line(found, value)
    return {key: record for key, record in found.items() if record.state == "done" and record.steps}

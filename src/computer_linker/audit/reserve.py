"""The reserve: what is kept of pruned segments, with sealed gaps in place of the rest, so that the chain stays provable."""

import json
import secrets
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from computer_linker.audit.layout import GENESIS, PRIVATE, SEAL, opened, segment_path, sync_folder
from computer_linker.audit.reading import BrokenLink, JournalPosition, Line, checked
from computer_linker.audit.secret import Key
from computer_linker.system import os, sync

ANCHOR = "anchor"
_FILE_BYTES = 8 << 20
_GAP = b'{"gap":'


class KeptFile(NamedTuple):
    """One file of the reserve, and how many records it holds."""

    id: int
    records: int


class Anchor(NamedTuple):
    """Where the whole chain begins, and the files that hold what is kept from before."""

    place: JournalPosition
    kept: tuple[KeptFile, ...] = ()
    last_id: int = 0
    oldest: str = ""
    """When the first record of the reserve began."""


def read_anchor(folder: Path, key: Key) -> Anchor:
    """Read the stored anchor. Raises BrokenLink when its seal does not verify."""
    try:
        line = (folder / ANCHOR).read_bytes().strip()
    except FileNotFoundError:
        return Anchor(JournalPosition(1, 0, 0, GENESIS))
    body = opened(line, key, b"anchor")
    if body is None:
        raise BrokenLink(0, "the anchor was changed")
    fields = json.loads(body)
    place = JournalPosition(fields["segment"], 0, fields["number"], fields["seal"].encode("ascii"))
    kept = tuple(KeptFile(*one) for one in fields.get("kept", []))
    return Anchor(place, kept, fields.get("lastId", 0), fields.get("oldest", ""))


def write_anchor(folder: Path, key: Key, anchor: Anchor) -> None:
    """Write the anchor atomically: from here on the files it names are the reserve."""
    place = anchor.place
    fields = {
        "number": place.number, "seal": place.seal.decode("ascii"), "segment": place.segment,
        "kept": anchor.kept, "lastId": anchor.last_id, "oldest": anchor.oldest,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
    }  # fmt: skip
    body = json.dumps(fields, separators=(",", ":")).encode("ascii")
    temporary = folder / f".{ANCHOR}.{secrets.token_hex(6)}"
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | PRIVATE, 0o600)
    try:
        os.write(handle, key.seal(b"anchor", body) + b" " + body + b"\n")
        sync(handle)
    finally:
        os.close(handle)
    temporary.replace(folder / ANCHOR)
    sync_folder(folder)


def kept_lines(folder: Path, key: Key, anchor: Anchor) -> Iterator[Line]:
    """Every record of the reserve, oldest first. Raises BrokenLink at the first that is not what was kept."""
    place = JournalPosition(0, 0, 0, GENESIS)
    for file in anchor.kept:
        place, records = place._replace(segment=-file.id, offset=0), 0
        try:
            handle = segment_path(folder, -file.id).open("rb")
        except FileNotFoundError:
            raise BrokenLink(place.number + 1, "a file of kept records is missing") from None
        with handle:
            for raw in handle:
                if raw[SEAL + 1 :].startswith(_GAP):
                    place = _after_gap(raw, key, place)
                    continue
                line = checked(raw[:-1], key, place, place.offset)
                yield line
                place, records = line.after, records + 1
        if records != file.records:
            raise BrokenLink(place.number + 1, "kept records are missing")
    if anchor.kept and (place.number, place.seal) != (anchor.place.number, anchor.place.seal):
        raise BrokenLink(place.number + 1, "kept records are missing")


def _after_gap(raw: bytes, key: Key, place: JournalPosition) -> JournalPosition:
    body = opened(raw[:-1], key, b"gap" + place.seal)
    if body is None:
        raise BrokenLink(place.number + 1, "a kept record was changed, or one before it was taken out")
    fields = json.loads(body)
    return JournalPosition(place.segment, place.offset + len(raw), fields["gap"], fields["seal"].encode("ascii"))


class ReserveWriter:
    """Writes a new set of files. Nothing refers to them until the anchor names them."""

    def __init__(self, folder: Path, key: Key, last_id: int) -> None:
        self._folder, self._key, self._id = folder, key, last_id
        self._done: list[KeptFile] = []
        self._handle = -1
        self._pending = bytearray()
        self._size = self._records = 0
        self._at = JournalPosition(0, 0, 0, GENESIS)
        """Up to where records were kept or left out."""
        self.oldest = ""

    def keep(self, line: Line, raw: bytes) -> None:
        """Write a record; what lies between the last one and this becomes a gap."""
        if line.after.number != self._at.number + 1:
            self._gap(line.after.number - 1, line.previous)
        self._add(raw + b"\n")
        self._records += 1
        self._at = line.after
        self.oldest = self.oldest or line.fields.get("startedAt", "")
        if self._size >= _FILE_BYTES:
            self._end_file()

    def finish(self, place: JournalPosition) -> Anchor:
        """Seal the reserve up to this position; return the anchor that activates it. Without a record there is no reserve."""
        if self._records or self._done:
            if place.number != self._at.number:
                self._gap(place.number, place.seal)
            self._end_file()
        return Anchor(place, tuple(self._done), self._id, self.oldest)

    def _gap(self, number: int, seal: bytes) -> None:
        body = b'%b%d,"seal":"%b"}' % (_GAP, number, seal)
        self._add(self._key.seal(b"gap" + self._at.seal, body) + b" " + body + b"\n")

    def _add(self, line: bytes) -> None:
        if self._handle < 0:
            self._id += 1
            path = segment_path(self._folder, -self._id)
            self._handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | PRIVATE, 0o600)
        self._pending += line
        self._size += len(line)
        if len(self._pending) >= 1 << 20:
            self._flush()

    def _flush(self) -> None:
        with memoryview(bytes(self._pending)) as rest:
            done = 0
            while done < len(rest):
                done += os.write(self._handle, rest[done:])
        self._pending.clear()

    def _end_file(self) -> None:
        if self._handle < 0:
            return
        self._flush()
        sync(self._handle)
        os.close(self._handle)
        self._done.append(KeptFile(self._id, self._records))
        self._handle, self._size, self._records = -1, 0, 0

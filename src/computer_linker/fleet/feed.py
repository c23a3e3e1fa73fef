"""Sends a machine's history to each of its hubs: every record once, in order; hidden records as their seal alone."""

import asyncio
import json
import logging
import secrets
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal, NamedTuple

import anyio.to_thread
from nats.js.errors import Error as JetStreamError

from computer_linker.audit.layout import PRIVATE, SEAL, read_at, segment_path
from computer_linker.audit.reading import BrokenLink, JournalPosition, Line, lines_after
from computer_linker.audit.retention import first_kept
from computer_linker.audit.store import AuditStore
from computer_linker.config.store import write_whole
from computer_linker.errors import LinkError
from computer_linker.fleet import messages
from computer_linker.fleet.link import LOST, FleetLink
from computer_linker.fleet.messages import HistoryBody
from computer_linker.fleet.seal import Signer
from computer_linker.model.principal import account_of
from computer_linker.system import os

log = logging.getLogger(__name__)

_FILE = "fleet-history-{}.json"
_MAX_LINES = 1000
_MAX_BYTES = 256 * 1024
_MAX_OPEN = 10_000
_ACK_S = 5.0
_KEEP_S = 10.0


class Cursor(NamedTuple):
    """The position up to which a hub has the history, and the shared operations whose outcome is still to be sent."""

    place: JournalPosition
    unfinished: frozenset[str]
    floor: int
    """The newest record from before the machine joined: earlier ones are not sent."""


class Visible(NamedTuple):
    """What a hub may see: events of these scopes, and its own calls."""

    scopes: frozenset[str]
    principal: str


class Destination(NamedTuple):
    """The destination of a feed: this machine's seat and key, one hub, one server."""

    seat: str
    signer: Signer
    hub: str
    url: str


class Feed:
    """Sends the journal to one hub. The cursor moves only when the server has stored a batch, and survives restarts."""

    def __init__(self, home: Path, store: AuditStore, goal: Destination, link: FleetLink) -> None:
        self._home, self._store, self._goal, self._link = home, store, goal, link
        self._subject = messages.audit(messages.seat_of(goal.hub), goal.seat)
        self._file = cursor_file(goal.hub)
        self._cursor = self._stored_cursor()
        self._stored: Cursor | None = None
        self._store_at = 0.0
        self._round = "0"
        self._again_from: int | None = None
        self.problem: str | None = None

    @property
    def sent(self) -> int:
        """The newest record the server has stored; 0 when it has none since the hub was allowed."""
        return self._cursor.place.number if self._cursor.place.number > self._cursor.floor else 0

    async def send(self, visible: Visible) -> None:
        """Send all new records of the journal. What cannot be sent now is sent later."""
        try:
            if self._stored is None:
                # The start position must survive a crash, whether or not anything could be sent.
                self.store_cursor()
            if self._again_from is not None:
                first, self._again_from = self._again_from, None
                # A batch the server stored and then lost must not be deduplicated when it is sent again.
                self._round = secrets.token_hex(4)
                self._cursor = await anyio.to_thread.run_sync(self._before, first, visible)
            while self._link.is_up and self._store.journal.head.number > self._cursor.place.number:
                head = self._store.journal.head
                end = (head.segment, head.offset)
                body, cursor = await anyio.to_thread.run_sync(self._batch, self._cursor, end, visible)
                if not body.lines:
                    return
                await self._store_batch(body)
                self._cursor = cursor
            if time.monotonic() >= self._store_at:
                self.store_cursor()
        except (*LOST, JetStreamError, LinkError) as error:
            self._postponed(str(error) or type(error).__name__)
        except BrokenLink as broken:
            self._postponed(f"the history stops at record {broken.number}: {broken.problem}")

    def rewind(self, first: int) -> None:
        """Resume the next send at this record, because the fleet lacks the records from there on."""
        if 0 < first <= self._cursor.place.number:
            self._again_from = first

    async def _store_batch(self, body: HistoryBody) -> None:
        last = body.first + len(body.lines) - 1
        sealed = self._goal.signer.sealed("history", body.model_dump(by_alias=True))
        # The server deduplicates a batch that is repeated soon; the hub one that is repeated late.
        named = {"Nats-Msg-Id": f"{self._goal.seat}-{self._round}-{body.first}-{last}"}
        js = self._link.jetstream(_ACK_S)
        await js.publish(self._subject, sealed, timeout=_ACK_S, headers=named)
        self.problem = None

    def _postponed(self, problem: str) -> None:
        if problem != self.problem:
            log.warning("the fleet's history waits: %s", problem)
        self.problem = problem

    def store_cursor(self) -> None:
        """Store the cursor for the next run. A slightly old one only repeats a few records, which the hub detects."""
        self._store_at = time.monotonic() + _KEEP_S
        if self._cursor == self._stored:
            return
        place, self._stored = self._cursor.place, self._cursor
        kept = {
            "url": self._goal.url, "seat": self._goal.seat, "segment": place.segment, "offset": place.offset,
            "number": place.number, "seal": place.seal.decode(), "unfinished": sorted(self._cursor.unfinished),
            "floor": self._cursor.floor,
        }  # fmt: skip
        write_whole(self._home, self._file, json.dumps(kept).encode())

    def _stored_cursor(self) -> Cursor:
        """Return the cursor of an earlier run; for a new hub or another server, the current end of the journal."""
        try:
            kept = json.loads((self._home / self._file).read_text("utf-8"))
            if (kept["url"], kept["seat"]) == (self._goal.url, self._goal.seat):
                place = JournalPosition(kept["segment"], kept["offset"], kept["number"], kept["seal"].encode())
                return Cursor(place, frozenset(kept["unfinished"]), kept["floor"])
        except (FileNotFoundError, ValueError, KeyError):
            pass
        head = self._store.journal.head
        return Cursor(JournalPosition(head.segment, head.offset, head.number, head.seal), frozenset(), head.number)

    def _batch(self, cursor: Cursor, end: tuple[int, int], visible: Visible) -> tuple[HistoryBody, Cursor]:
        key, folder = self._store.key, self._store.folder
        begin = first_kept(folder, key)
        place = begin if begin.number > cursor.place.number else cursor.place
        first, previous, unfinished = place.number + 1, place.seal, set(cursor.unfinished)
        lines: list[list[bytes | None]] = []
        size = 0
        with _Raw(folder) as raw:
            for line in lines_after(folder, key, place, end):
                visible_body = raw.body(line) if _is_visible(line.fields, visible, unfinished) else None
                lines.append([line.after.seal, visible_body])
                place, size = line.after, size + SEAL + len(visible_body or b"")
                if len(lines) >= _MAX_LINES or size >= _MAX_BYTES:
                    break
        after: Literal["more", "pruned", "joined"] = "joined" if first == cursor.floor + 1 else "more"
        if begin.number > cursor.place.number:
            after = "pruned"
        body = HistoryBody(to=self._goal.hub, first=first, previous=previous, lines=lines, after=after)
        return body, Cursor(place, frozenset(list(unfinished)[-_MAX_OPEN:]), cursor.floor)

    def _before(self, first: int, visible: Visible) -> Cursor:
        """The cursor before this record, or at the current beginning of the journal."""
        place, unfinished = first_kept(self._store.folder, self._store.key), set[str]()
        end = (self._cursor.place.segment, self._cursor.place.offset)
        for line in lines_after(self._store.folder, self._store.key, place, end):
            if line.after.number >= max(first, self._cursor.floor + 1):
                break
            _is_visible(line.fields, visible, unfinished)
            place = line.after
        return Cursor(place, frozenset(unfinished), self._cursor.floor)


class _Raw:
    """The raw bytes of records in the journal."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._handles: dict[int, int] = {}

    def __enter__(self) -> "_Raw":
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self._handles.values():
            os.close(handle)

    def body(self, line: Line) -> bytes:
        if line.segment not in self._handles:
            self._handles[line.segment] = os.open(segment_path(self._folder, line.segment), os.O_RDONLY | PRIVATE)
        raw: bytes = read_at(self._handles[line.segment], line.length, line.offset)
        return raw[SEAL + 1 :]


def _is_visible(fields: dict[str, Any], visible: Visible, unfinished: set[str]) -> bool:
    match fields["kind"]:
        case "intent" | "record":
            is_visible = fields["scope"] in visible.scopes or account_of(fields["principal"]) == visible.principal
            if is_visible and fields["kind"] == "intent":
                unfinished.add(fields["operationId"])
            return is_visible
        case "outcome":
            if fields["operationId"] not in unfinished:
                return False
            unfinished.discard(fields["operationId"])
            return True
        case _:
            return False


def cursor_file(hub: str) -> str:
    """Return the name of a hub's cursor file in the state folder."""
    return _FILE.format(messages.seat_of(hub))


def forget_cursors(home: Path, hubs: Iterable[str] = ()) -> None:
    """Delete the cursors of all other hubs, so that a hub allowed again later starts from then."""
    kept = {cursor_file(hub) for hub in hubs}
    for path in home.glob(_FILE.format("*")):
        if path.name not in kept:
            path.unlink(missing_ok=True)


async def send_continuously(feed: Feed, visible: Callable[[], Visible], every_s: float) -> None:
    """Send new records until cancelled. The journal has no change notification, so it is polled."""
    while True:
        try:
            await feed.send(visible())
        except LinkError as error:
            # Without a valid config the permissions are unknown: nothing is sent.
            log.warning("the fleet's history is not sent: %s", error.message)
        await asyncio.sleep(every_s)

"""The fleet's history: consumes the server's stream, verifies it, and answers queries per machine or for all."""

import asyncio
import json
import logging
import sqlite3
import time
from functools import partial
from typing import Any

import anyio.to_thread
from nats.aio.msg import Msg
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, DiscardPolicy, StreamConfig
from nats.js.errors import Error as JetStreamError
from nats.js.errors import NotFoundError

from computer_linker.audit import query
from computer_linker.audit.pages import MAX_LIMIT, event_of
from computer_linker.audit.redact import escaped
from computer_linker.errors import InvalidRequest, LinkError
from computer_linker.fleet import messages
from computer_linker.fleet.archive import Archive
from computer_linker.fleet.hub import Hub
from computer_linker.fleet.link import LOST
from computer_linker.fleet.machines import Machine, is_query, parse
from computer_linker.fleet.seal import signer_of
from computer_linker.fleet.tasks import cancel, restarting_task

log = logging.getLogger(__name__)

VIEWS = ("last", "timeline", "verify")
_FETCH_S = 5.0
"""How long a fetch waits at the server for something new."""
_PAUSE_S = 0.5
_LOOK_S = 30.0
_MAX_TRIES = 20
_CONSUMER = "hub"
_APPROVED = "json_extract(opening, '$.approval.said') = 'yes' AND json_extract(opening, '$.approval.{}') = ?"
_OF_RECORD = {
    "approved = ?": _APPROVED.format("way"),
    "approved_by = ?": _APPROVED.format("by"),
    "handle = ?": "? IN (json_extract(opening, '$.target'), json_extract(closing, '$.summary.processId'))",
}
"""The archive has no columns for these: they are in the records."""
_KEEP_BYTES = 256 << 20
"""The stream is a transport, not the archive: what it drops before a hub has it, the machine sends again."""


class FleetHistory:
    """The hub's history of its machines."""

    def __init__(self, hub: Hub, archive: Archive, fetch_s: float = _FETCH_S) -> None:
        self._hub, self._archive, self._fetch_s = hub, archive, fetch_s
        self._tasks: list[asyncio.Task[None]] = []
        self.problem: str | None = None
        self._behind: dict[str, int] = {}
        """The last stored record of each machine that had sent more, at the last check."""

    def start(self) -> None:
        """Begin to consume what machines send."""
        self._tasks = [restarting_task(self._consume, "the hub's history")]

    async def aclose(self) -> None:
        """Stop; the server stores the rest for the next run."""
        await cancel(self._tasks)

    async def answer(
        self, address: str, *, view: str, limit: int, terms: str | None, cursor: str | None
    ) -> dict[str, Any]:
        """One view over the machines of an address: `laptop`, `laptop/app`, `[os=linux]/app`, `[all]`."""
        if view not in VIEWS:
            raise InvalidRequest(f"There is no view {view[:40]!r} of a fleet's history.", views=list(VIEWS))
        name, _, scope = address.partition("/")
        machines = self._matching(name)
        if view == "verify":
            checked = [await anyio.to_thread.run_sync(self._verified, machine) for machine in machines]
            return {
                "view": view,
                "events": [],
                "nextCursor": None,
                "valid": all(c["valid"] for c in checked),
                "machines": checked,
            }
        page = partial(self._page, machines, scope or None, view == "last", limit, terms, cursor)
        events, following = await anyio.to_thread.run_sync(page)
        return {"view": view, "events": events, "nextCursor": following}

    def _matching(self, name: str) -> list[Machine]:
        """The machines of an address, including those that left: their history stays."""
        if not is_query(name):
            return [self._hub.machines.find(name)]
        wanted = parse(name)
        trusted = (machine for machine in self._hub.machines.by_key.values() if machine.trusted)
        return [m for m in trusted if wanted.matches(m.known.name, m.known.facts, m.capabilities)]

    def _page(
        self, machines: list[Machine], scope: str | None, newest_first: bool, limit: int, terms: str | None,
        cursor: str | None,
    ) -> tuple[list[dict[str, Any]], str | None]:  # fmt: skip
        found = query.within(query.parse(terms), None, scope)
        known = {machine.known.fingerprint: machine for machine in machines}
        found.where = [_OF_RECORD.get(condition, condition) for condition in found.where]
        found.add(f"machine IN ({','.join('?' * len(known))})", *known)
        if found.nothing or not known:
            return [], None
        limit = max(1, min(limit, MAX_LIMIT))
        with self._archive.reading() as database:
            query.define_holds(database)
            _after(database, found, cursor, newest_first=newest_first)
            rows = _rows(database, found, newest_first=newest_first, limit=limit + 1)
        events = [_event(known[row[1]], row) for row in rows[:limit]]
        return events, f"f{rows[limit - 1][0]}" if len(rows) > limit else None

    def _verified(self, machine: Machine) -> dict[str, Any]:
        verdict = self._archive.verify(machine.known.fingerprint)
        problems = self._archive.problems(machine.known.fingerprint)
        reported = machine.presence.history if machine.presence is not None else 0
        return {
            "machine": machine.known.name, "machineId": machine.known.machine_id, "valid": verdict.first_bad is None,
            "records": verdict.records, "beginsAt": verdict.begins_at, "last": verdict.last,
            "missing": max(0, reported - verdict.last), "firstBad": verdict.first_bad, "problem": verdict.problem,
            "problems": problems,
        }  # fmt: skip

    async def _consume(self) -> None:
        """Consume batches while the hub runs; the server stores the position."""
        while True:
            if self._hub.link.is_up:
                try:
                    js = self._hub.link.jetstream()
                    await self._ensure_stream(js)
                    await self._follow(js)
                except (*LOST, JetStreamError, LinkError, sqlite3.Error) as error:
                    if str(error) != self.problem:
                        log.info("the fleet's history waits: %s", error)
                    self.problem = str(error)
            await asyncio.sleep(_PAUSE_S)

    async def _follow(self, js: JetStreamContext) -> None:
        wanted = ConsumerConfig(
            durable_name=_CONSUMER, ack_policy=AckPolicy.EXPLICIT, ack_wait=30, max_deliver=_MAX_TRIES
        )
        seat = self._hub.seat
        consumer = await js.pull_subscribe(
            messages.every_audit(seat), durable=_CONSUMER, stream=messages.stream(seat), config=wanted
        )
        self.problem = None
        check_at = time.monotonic() + _LOOK_S
        while self._hub.link.is_up:
            # Checked at once when there is nothing new; under constant traffic, periodically.
            if time.monotonic() >= check_at:
                check_at = time.monotonic() + _LOOK_S
                await self._ask_for_missing()
            try:
                batches = await consumer.fetch(50, timeout=self._fetch_s)
            except TimeoutError:
                check_at = 0
                continue
            for batch in batches:
                await self._store(batch)

    async def _ask_for_missing(self) -> None:
        """Ask a machine to resend records that it reported as sent and that never arrived."""
        behind: dict[str, int] = {}
        for machine in list(self._hub.machines.by_key.values()):
            if not machine.trusted or machine.presence is None:
                continue
            key = machine.known.fingerprint
            last = await anyio.to_thread.run_sync(self._archive.last, key)
            if machine.sent > last:
                behind[key] = last
                if self._behind.get(key) == last:
                    await self._hub.ask_history(machine, last + 1)
        self._behind = behind

    async def _store(self, batch: Msg) -> None:
        try:
            signer = signer_of(batch.data)
            machine = self._hub.machines.by_key.get(signer)
            if machine is None or not machine.trusted:
                # Its history is requested once it is trusted.
                await batch.ack()
                return
            fate = await anyio.to_thread.run_sync(self._archive.take, signer, batch.data)
            if fate == "gap":
                await self._hub.ask_history(machine, await anyio.to_thread.run_sync(self._archive.last, signer) + 1)
            elif fate == "changed":
                await self._hub.refuse(InvalidRequest("A machine's history was told otherwise before.", rule="changed"))
        except LinkError as error:
            await self._hub.refuse(error)
        await batch.ack()

    async def _ensure_stream(self, js: JetStreamContext) -> None:
        name, wanted = messages.stream(self._hub.seat), [messages.every_audit(self._hub.seat)]
        try:
            await js.stream_info(name)
        except NotFoundError:
            await js.add_stream(
                StreamConfig(
                    name=name, subjects=wanted, max_bytes=_KEEP_BYTES, discard=DiscardPolicy.OLD, duplicate_window=120
                )
            )


def _after(database: sqlite3.Connection, found: query.Filter, cursor: str | None, *, newest_first: bool) -> None:
    if cursor is None:
        return
    digits = cursor[1:]
    row = None
    if cursor[:1] == "f" and digits.isascii() and digits.isdigit() and len(digits) <= 18:
        row = database.execute("SELECT at, number FROM events WHERE number = ?", (int(digits),)).fetchone()
    if row is None:
        raise InvalidRequest("This cursor is not one of the fleet's history. Leave it out to begin at the start.")
    found.add(f"(at, number) {'<' if newest_first else '>'} (?, ?)", *row)


def _rows(
    database: sqlite3.Connection, found: query.Filter, *, newest_first: bool, limit: int
) -> list[tuple[Any, ...]]:
    order = "DESC" if newest_first else "ASC"
    where, values = list(found.where), list(found.values)
    if found.words:
        where.append("number IN (SELECT rowid FROM words WHERE words MATCH ?)")
        values.append(" ".join(found.words))
    return database.execute(
        f"SELECT number, machine, n, opening, closing FROM events WHERE {' AND '.join(where)}"  # noqa: S608 - our words
        f" ORDER BY at {order}, number {order} LIMIT ?",
        (*values, limit),
    ).fetchall()


def _event(machine: Machine, row: tuple[Any, ...]) -> dict[str, Any]:
    number, opening = row[2], json.loads(row[3])
    closing = json.loads(row[4]) if row[4] is not None else opening
    outcome = "unknown"
    if "ok" in closing:
        outcome = "done" if closing["ok"] else "refused" if closing.get("decision") == "deny" else "failed"
    event = {field: _plain(value) for field, value in event_of({**opening, **closing, "n": number}, outcome).items()}
    name = machine.known.name
    return {**event, "machine": name, "machineId": machine.known.machine_id, "scope": f"{name}/{event['scope']}"}


def _plain(value: Any) -> Any:
    """Return a machine's values made safe for display: no terminal control sequences."""
    if isinstance(value, str):
        return escaped(value[:400])
    if isinstance(value, dict):
        return {
            escaped(str(name)[:40]): _plain(item)
            for name, item in list(value.items())[:16]
            if not isinstance(item, dict)
        }
    return value if value is None or isinstance(value, bool | int | float) else escaped(str(value)[:400])

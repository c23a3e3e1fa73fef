"""The approval page for a phone on the same network: opened by a one-time link, off by default."""

import asyncio
import hashlib
import json
import secrets
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Self
from urllib.parse import parse_qs

import anyio

from computer_linker.approvals.approvals import Answerer, Approvals
from computer_linker.approvals.request import Answer, ApprovalRequest
from computer_linker.approvals.terminal import OpenedPage, TerminalApprovals
from computer_linker.audit.faults import AuditUnavailable
from computer_linker.errors import InvalidRequest, LimitExceeded
from computer_linker.model.ids import new_handle
from computer_linker.model.principal import Principal
from computer_linker.services import Services
from computer_linker.transports.http.approval_html import SCRIPT_HASH, closed_page, is_shown_whole, list_page
from computer_linker.transports.http.body import Receive, Scope, Send, check_form_headers, read_body
from computer_linker.transports.http.guards import Headers, Refused, check_no_page_sent_it
from computer_linker.transports.http.own_address import is_near

PATH = "/approve"
STATE_PATH = "/approve/state"
LINK_S = 300.0
_IDLE_S, _WHOLE_S = 600.0, 12 * 3600.0
_PRESENT_S = 25.0
_MAX_BODY = 4096
_NO_LINK = (0.0, "")
_ANSWERS: dict[str, Answer] = {"allow": "yes", "same": "same", "shape": "shape", "deny": "no"}
HEADERS = [
    (b"content-type", b"text/html; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    # Not `no-referrer`: a browser then sends the form with the origin `null`, which is refused.
    (b"referrer-policy", b"same-origin"),
    (
        b"content-security-policy",
        b"default-src 'none'; style-src 'unsafe-inline'; script-src '"
        + SCRIPT_HASH.encode()
        + b"'; connect-src 'self'; "
        b"img-src data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    ),
]


@dataclass(slots=True)
class _Phone:
    """One browser that was admitted by a link."""

    name: str
    csrf: str
    address: str
    """Where it was admitted; its cookie is worth nothing elsewhere, for a browser sends it to every port of this host."""
    source: str
    opened: float
    seen: float

    @property
    def principal(self) -> Principal:
        return Principal(f"page:{self.address}", "approver", self.name, self.name)

    def is_open(self, now: float) -> bool:
        return now - self.seen < _IDLE_S and now - self.opened < _WHOLE_S


class ApprovalPage:
    """The links, the browsers admitted by them, and their presence, which makes calls wait for an answer."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._approvals = services.use(Approvals)
        self._links: dict[bytes, tuple[float, str]] = {}
        self._phones: dict[bytes, _Phone] = {}
        self._present_until = 0.0
        self._presence: asyncio.Task[None] | None = None

    @classmethod
    def open(cls, services: Services) -> Self:
        return cls(services)

    async def aclose(self) -> None:
        """End the presence of all browsers."""
        if self._presence is not None:
            self._presence.cancel()
            await asyncio.wait([self._presence], timeout=5)

    def new_link(self, source: str = "phone") -> str:
        """The path of a link that opens the page once, within five minutes. An older one of the same source becomes invalid."""
        secret = secrets.token_urlsafe(24)
        self._links = {known: link for known, link in self._links.items() if link[1] != source}
        self._links[_hash(secret)] = (time.monotonic() + LINK_S, source)
        return f"{PATH}/{secret}"

    def close_links(self, source: str) -> None:
        """End the link of a source, and the browsers that its links let in."""
        self._links = {known: link for known, link in self._links.items() if link[1] != source}
        self._phones = {known: phone for known, phone in self._phones.items() if phone.source != source}

    def opened(self) -> list[OpenedPage]:
        """The browsers that can answer now."""
        now = time.monotonic()
        return [
            OpenedPage(
                id=phone.name,
                address=phone.address,
                link=phone.source,
                opened_at=_stamp(now - phone.opened),
                last_seen_at=_stamp(now - phone.seen),
            )
            for phone in self._phones.values()
            if phone.is_open(now)
        ]

    def close(self, name: str | None) -> int:
        """End the browser of this name; without one all browsers and links. Returns how many browsers were ended."""
        ended = [phone for phone in self.opened() if name in (None, phone.id)]
        gone = {phone.id for phone in ended}
        self._phones = {known: phone for known, phone in self._phones.items() if phone.name not in gone}
        if name is None:
            self._links = {}
        return len(ended)

    async def serve(self, scope: Scope, receive: Receive, send: Send, headers: Headers) -> None:
        """Answer one request beneath /approve."""
        peer = (scope.get("client") or ("",))[0]
        if not self._services.config.approval_page or not is_near(peer):
            raise Refused(404, "There is nothing here.")
        path, method = scope["path"], scope["method"]
        if path not in (PATH, STATE_PATH):
            await self._admit(path.removeprefix(PATH + "/"), method, peer, send)
            return
        phone = self._phone(headers, peer)
        if phone is None:
            await _answer(send, 403, closed_page())
        elif method == "POST" and path == PATH:
            await self._take_answer(phone, headers, receive, send, peer)
        elif method == "GET":
            self._start_presence()
            await (self._state(send) if path == STATE_PATH else self._list(phone, send))
        else:
            raise Refused(405, "Only GET and POST here.")

    async def _list(self, phone: _Phone, send: Send) -> None:
        waiting, terminals = self._approvals.waiting(), self._services.use(TerminalApprovals)
        shown = [(asked, await terminals.choices(asked)) for asked in waiting]
        await _answer(send, 200, list_page(shown, phone.csrf, self._services.config.machine_name))

    async def _state(self, send: Send) -> None:
        """What waits, for the page's own script: ids and seconds, nothing else."""
        waiting = {asked.id: asked.seconds_left for asked in self._approvals.waiting()}
        await _answer(send, 200, json.dumps(waiting), [(b"content-type", b"application/json")])

    async def _admit(self, secret: str, method: str, peer: str, send: Send) -> None:
        """Exchange a link for a cookie, once that is recorded."""
        until, source = self._links.pop(_hash(secret), _NO_LINK) if method == "GET" else _NO_LINK
        now = time.monotonic()
        if now >= until:
            await _answer(send, 403, closed_page())
            return
        name = secrets.token_urlsafe(32)
        phone = _Phone(new_handle("phone"), secrets.token_urlsafe(24), peer, source, now, now)
        try:
            await self._services.note("approvals.open", phone.principal, {"page": phone.name, "link": source})
        except AuditUnavailable as error:
            raise Refused(503, f"Opening this page cannot be recorded, so it stays closed. {error.message}") from error
        self._phones = {known: one for known, one in self._phones.items() if one.is_open(now)}
        self._phones[_hash(name)] = phone
        cookie = f"approve={name}; Path={PATH}; HttpOnly; SameSite=Lax; Max-Age={int(_WHOLE_S)}"
        await _answer(send, 303, "", [(b"location", PATH.encode()), (b"set-cookie", cookie.encode())])

    async def _take_answer(self, phone: _Phone, headers: Headers, receive: Receive, send: Send, peer: str) -> None:
        check_form_headers(headers)
        check_no_page_sent_it(headers)
        body = await read_body(receive)
        if self._phone(headers, peer) is not phone:
            # Closed by the owner while the form was on its way.
            await _answer(send, 403, closed_page())
            return
        form = parse_qs(body[:_MAX_BODY].decode("utf-8", "replace"), max_num_fields=8)
        given = {name: values[0] for name, values in form.items()}
        if not secrets.compare_digest(given.get("csrf", "").encode(), phone.csrf.encode()):
            raise Refused(403, "This form is not from your page. Open the page again.")
        answer = _ANSWERS.get(given.get("answer", ""))
        if answer is None:
            raise Refused(400, "The answer is one of allow, same, shape and deny.")
        asked = self._approvals.ledger.find(given.get("id", ""))
        if answer != "no" and asked is not None and not is_shown_whole(asked):
            raise Refused(
                400, "This request is too long for the page. Allow it at the computer: computer-linker approvals."
            )
        # An id with nothing pending changes nothing; the list page shows that.
        try:
            await self._approvals.take(given.get("id", ""), answer, Answerer(phone.principal, "page"))
        except (InvalidRequest, LimitExceeded) as error:
            raise Refused(400, error.message) from error
        except AuditUnavailable as error:
            raise Refused(503, f"The answer cannot be recorded, so it does not count. {error.message}") from error
        await _answer(send, 303, "", [(b"location", PATH.encode())])

    def _phone(self, headers: Headers, peer: str) -> _Phone | None:
        now = time.monotonic()
        for part in headers.get(b"cookie", b"").split(b";"):
            name, _, value = part.strip().partition(b"=")
            phone = self._phones.get(hashlib.sha256(value).digest()) if name == b"approve" else None
            if phone is None or phone.address != peer:
                continue
            if phone.is_open(now):
                phone.seen = now
                return phone
            del self._phones[hashlib.sha256(value).digest()]
        return None

    def _start_presence(self) -> None:
        loop = asyncio.get_running_loop()
        self._present_until = loop.time() + _PRESENT_S
        if self._presence is None or self._presence.done():
            self._presence = loop.create_task(self._hold_presence())

    async def _hold_presence(self) -> None:
        """Count as an approver while the page is open: it looks again before this expires."""

        gone = anyio.Event()

        async def person(asked: ApprovalRequest) -> Answer | None:
            await gone.wait()
            return None

        loop = asyncio.get_running_loop()
        async with self._approvals.attached("page", person, "page"):
            # Each page load extends the deadline; no earlier event ends the wait.
            while (left := self._present_until - loop.time()) > 0:  # noqa: ASYNC110
                await asyncio.sleep(left)
        gone.set()


async def _answer(send: Send, status: int, html: str, more: list[tuple[bytes, bytes]] | None = None) -> None:
    body = html.encode()
    given = {**dict(HEADERS), **dict(more or [])}
    headers = [*given.items(), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _stamp(seconds_ago: float) -> str:
    return (datetime.now(UTC) - timedelta(seconds=seconds_ago)).isoformat(timespec="seconds")


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()

"""Push: notifies the owner's addresses (an ntfy topic, a webhook) that a request waits, with a link that opens the page once.

Nothing of the request is sent unless the owner chose so. The message is signed; an answer comes by the page alone.
"""

import hashlib
import hmac
import logging
import secrets
import time
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import Any, Self
from urllib.parse import urlsplit

import anyio
from pydantic_core import to_json

from computer_linker.approvals.approvals import Approvals, Approver
from computer_linker.approvals.request import Answer, ApprovalRequest
from computer_linker.approvals.store import PushTarget
from computer_linker.errors import InvalidRequest, ProviderUnavailable
from computer_linker.http_client import RequestFailed, fetch
from computer_linker.model.ids import new_handle
from computer_linker.services import Services

log = logging.getLogger(__name__)
SIGNATURE = "Computer-Linker-Signature"
_SEND_S = 10.0
_EVERY_S = 30.0
"""One message for many requests: an address gets no more than one in this time."""
_MAX_LINES = 10


class PushApprover:
    """The owner's addresses. A request that was pushed to one of them waits for an answer on the page."""

    def __init__(self, services: Services) -> None:
        self._services, self._approvals = services, services.use(Approvals)
        self.new_link: Callable[[str], str | None] = _no_page
        """Returns a link for an address by its id; set while the page is served."""
        self._sent: dict[str, float] = {}
        self._turns: dict[str, anyio.Lock] = defaultdict(anyio.Lock)

    @classmethod
    def open(cls, services: Services) -> Self:
        return cls(services)

    async def find(self, asked: ApprovalRequest) -> Approver | None:
        """Return the approver while the owner has an address."""
        return self._ask if self._approvals.store.push else None

    async def try_out(self, target: PushTarget) -> None:
        """Send a first message. Raises ProviderUnavailable when the address does not take it."""
        message = _message(self._machine, "Requests that wait for your answer will be announced here.", None)
        why = await _send(target, message, {"type": "approval.test", "machine": self._machine})
        if why is not None:
            raise ProviderUnavailable(f"The address did not take a first message, so it was not added: {why}.")

    async def _ask(self, asked: ApprovalRequest) -> Answer | None:
        """Push, then wait for the answer that comes by the page; None when no address was reached."""
        reached: list[bool] = []

        async def one(target: PushTarget) -> None:
            reached.append(await self._notify(target, asked))

        async with anyio.create_task_group() as group:
            for target in self._approvals.store.push:
                group.start_soon(one, target)
        if any(reached):
            await anyio.sleep_forever()
        return None

    async def _notify(self, target: PushTarget, asked: ApprovalRequest) -> bool:
        """Send a message about all that waits, unless one was sent since this was asked."""
        async with self._turns[target.id]:
            sent = self._sent.get(target.id, -_EVERY_S)
            await anyio.sleep(max(0.0, sent + _EVERY_S - time.monotonic()))
            if sent >= asked.asked_at:
                return True
            self._sent[target.id] = time.monotonic()
            why = await self._announce(target, asked)
        if why is not None:
            log.warning("a request could not be pushed to %s: %s", urlsplit(target.url).hostname, why)
        return why is None

    async def _announce(self, target: PushTarget, asked: ApprovalRequest) -> str | None:
        count, link = len(self._approvals.waiting()), self.new_link(target.id)
        content = _content(asked) if target.content else None
        text = f"{count} request{'s wait' if count != 1 else ' waits'} for your answer."
        text += "" if content is None else f"\n{content['text']}"
        text += "" if link else "\nAnswer at the computer: computer-linker approvals"
        expires = datetime.fromtimestamp(time.time() + asked.seconds_left, UTC).isoformat(timespec="seconds")
        body = {"type": "approval.waiting", "machine": self._machine, "waiting": count, "id": asked.id}
        body |= {"expiresAt": expires, "link": link}
        return await _send(
            target, _message(self._machine, text, link), body if content is None else body | {"content": content}
        )

    @property
    def _machine(self) -> str:
        return self._services.config.machine_name


def new_target(url: str, *, is_ntfy: bool, token: str | None, with_content: bool) -> PushTarget:
    """Check an address. Raises InvalidRequest for one that is no https address, nor http on the owner's own network."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None or parts.fragment:
        raise InvalidRequest("The address is an https URL without a login in it.")
    if parts.scheme == "http" and not _is_near(parts.hostname):
        raise InvalidRequest(
            "Over http a message can be read on its way; only an address of your own network may use it."
        )
    if (is_ntfy and len(parts.path.strip("/").split("/")) != 1) or (is_ntfy and not parts.path.strip("/")):
        raise InvalidRequest("An ntfy topic is an address such as https://ntfy.example/my-topic.")
    return PushTarget(
        id=new_handle("push"),
        url=url,
        kind="ntfy" if is_ntfy else "webhook",
        content=with_content,
        token=token,
        secret=secrets.token_urlsafe(32),
        added_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def signature(secret: str, at: int, body: bytes) -> str:
    """The signature header of a body: its time, and an HMAC-SHA256 of time and body."""
    mac = hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256)
    return f"t={at},v1={mac.hexdigest()}"


async def _send(target: PushTarget, message: dict[str, Any], webhook: dict[str, Any]) -> str | None:
    """Send one message; why it failed, or None."""
    url, value = target.url, webhook
    if target.kind == "ntfy":
        parts = urlsplit(url)
        url, value = parts._replace(path="/", query="").geturl(), {"topic": parts.path.strip("/"), **message}
    body = to_json(value)
    headers = {"content-type": "application/json", SIGNATURE: signature(target.secret, int(time.time()), body)}
    if target.token is not None:
        headers["authorization"] = f"Bearer {target.token}"
    try:
        answer = await fetch(url, seconds=_SEND_S, method="POST", content=body, headers=headers)
    except RequestFailed as error:
        return str(error)
    return None if 200 <= answer.status < 300 else f"it answered {answer.status}"


def _message(machine: str, text: str, link: str | None) -> dict[str, Any]:
    """A message as ntfy takes it."""
    message = {"title": f"Computer Linker on {machine}", "message": text, "priority": 4}
    return message | ({} if link is None else {"click": link})


def _content(asked: ApprovalRequest) -> dict[str, str]:
    lines = () if asked.about is None else asked.about.lines
    shown = "\n".join([f"{asked.asker} wants {asked.op} in {asked.scope}", *lines[:_MAX_LINES]])
    return {"op": asked.op, "scope": asked.scope, "client": asked.asker, "text": shown[:1000]}


def _is_near(host: str) -> bool:
    try:
        return not ip_address(host).is_global
    except ValueError:
        return host == "localhost" or host.endswith((".local", ".lan", ".home.arpa"))


def _no_page(_target: str) -> str | None:
    return None

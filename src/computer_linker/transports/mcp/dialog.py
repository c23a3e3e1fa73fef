"""Approval by the client's own dialog: elicitation in the handshake era, an input-required result in 2026-07-28."""

import asyncio
from collections.abc import Callable
from typing import Any

from pydantic_core import to_json

from computer_linker.approvals.request import DIALOG_CHARACTERS, Answer, ApprovalRequest, NeedsInput
from computer_linker.policy.visible_text import beginning

KEY = "confirm"
_CHOICES: dict[str, Answer] = {"Allow once": "yes", "Do not allow": "no"}


def can_ask(capabilities: dict[str, Any] | None) -> bool:
    """True when the client declares form elicitation. An empty capability means forms, by the protocol."""
    elicitation = (capabilities or {}).get("elicitation")
    return type(elicitation) is dict and (not elicitation or "form" in elicitation)


def question(asked: ApprovalRequest) -> dict[str, Any]:
    """The parameters of elicitation/create: what would change, the exact request, escaped, and the answers.

    It is information, and can refuse. It can allow only where the owner let this client's dialog do so, and only what it shows
    whole: a dialog gives no sign of how much of a text it shows.
    """
    choices, text = list(_CHOICES), asked.text if asked.fits_a_dialog else beginning(asked.text, DIALOG_CHARACTERS)
    if not asked.may_allow_in_dialog:
        choices = [name for name, answer in _CHOICES.items() if answer == "no"]
        text += "\n\nThe owner can allow it, where all of it is shown: computer-linker approvals"
    return {
        "message": f"{asked.asker} wants {asked.op} in scope {asked.scope}:\n\n{text}",
        "requestedSchema": {
            "type": "object",
            "properties": {"decision": {"type": "string", "title": "Your decision", "enum": choices}},
            "required": ["decision"],
        },
    }


def answer_of(response: Any) -> Answer | None:
    """The person's choice; None when the dialog returned none.

    Declined counts as closed: an unattended client declines by itself, and a person can still be asked elsewhere.
    Accepted without one of the choices is not a yes either.
    """
    content = response.get("content") if type(response) is dict and response.get("action") == "accept" else None
    choice = content.get("decision") if type(content) is dict else None
    return _CHOICES.get(choice) if type(choice) is str else None


class LineDialog:
    """The questions to one handshake-era client on a line connection."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._open: dict[str, asyncio.Future[Any]] = {}
        self._count = 0

    async def ask(self, asked: ApprovalRequest) -> Answer | None:
        self._count += 1
        request_id = f"computer-linker-{self._count}"
        answered = self._open[request_id] = asyncio.get_running_loop().create_future()
        try:
            params = question(asked)
            self._send(to_json({"jsonrpc": "2.0", "id": request_id, "method": "elicitation/create", "params": params}))
            return answer_of(await answered)
        except asyncio.CancelledError:
            # Answered elsewhere, or ended: the client can close its dialog.
            self._send(
                to_json({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request_id}})
            )
            raise
        finally:
            del self._open[request_id]

    def take(self, request_id: Any, result: Any) -> bool:
        """Take the client's answer; False when it answers no question of ours."""
        answered = self._open.get(request_id)
        if answered is None:
            return False
        if not answered.done():
            answered.set_result(result)
        return True


async def ask_by_result(asked: ApprovalRequest) -> Answer | None:
    """The 2026-07-28 form: the call ends with a question, and is repeated with the answer."""
    raise NeedsInput(asked)


def input_required(asked: ApprovalRequest) -> bytes:
    """The members of the InputRequiredResult. The state is a handle: its content never leaves this service."""
    requests = {KEY: {"method": "elicitation/create", "params": question(asked)}}
    value = {"resultType": "input_required", "inputRequests": requests, "requestState": asked.id}
    return to_json(value)

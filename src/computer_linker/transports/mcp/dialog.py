"""The client's own dialog as a way to ask a person: elicitation in the handshake era, an input-required result in 2026-07-28."""

from typing import Any

from pydantic_core import to_json

from computer_linker.policy.confirm import Asked
from computer_linker.providers.approvals import Answer, NeedsInput

KEY = "confirm"
_CHOICES: dict[str, Answer] = {
    "Allow once": "yes",
    "Allow for this session and scope": "yes_for_session",
    "Do not allow": "no",
}


def can_ask(capabilities: dict[str, Any] | None) -> bool:
    """True when the client says it can show a form. An empty capability means forms, by the protocol."""
    elicitation = (capabilities or {}).get("elicitation")
    return type(elicitation) is dict and (not elicitation or "form" in elicitation)


def question(asked: Asked) -> dict[str, Any]:
    """The parameters of elicitation/create: the exact request, escaped, and three answers."""
    return {
        "message": f"{asked.client or asked.principal} wants {asked.op} in scope {asked.scope}:\n\n{asked.preview}",
        "requestedSchema": {
            "type": "object",
            "properties": {"decision": {"type": "string", "title": "Your decision", "enum": list(_CHOICES)}},
            "required": ["decision"],
        },
    }


def answer_of(response: Any) -> Answer | None:
    """What the person chose; None when the dialog brought no choice.

    Declined counts as closed: a client that nobody watches declines by itself, and a person can still be asked elsewhere.
    Accepted without one of the choices is not a yes either.
    """
    content = response.get("content") if type(response) is dict and response.get("action") == "accept" else None
    choice = content.get("decision") if type(content) is dict else None
    return _CHOICES.get(choice) if type(choice) is str else None


async def ask_by_result(asked: Asked) -> Answer | None:
    """The 2026-07-28 way: the call ends with a question, and comes again with the answer."""
    raise NeedsInput(asked)


def input_required(asked: Asked) -> bytes:
    """The members of the InputRequiredResult. The state is a handle: what it stands for never leaves this service."""
    requests = {KEY: {"method": "elicitation/create", "params": question(asked)}}
    value = {"resultType": "input_required", "inputRequests": requests, "requestState": asked.id}
    return to_json(value)

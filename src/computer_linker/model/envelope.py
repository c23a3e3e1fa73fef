"""The stable outer shape of every request and every answer."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, get_args

from pydantic_core import to_json

from computer_linker.errors import InvalidRequest, LinkError, ProviderUnavailable, wire_codes
from computer_linker.model.effect import Known
from computer_linker.model.principal import FarClient

_CONFIRM_FIELDS = frozenset({"token", "phrase", "approvedAt", "approver"})
CALL_FIELDS = frozenset({"scope", "op", "target", "input", "options", "confirm"})


@dataclass(frozen=True, slots=True)
class Call:
    """One requested operation, with only its outer form checked."""

    scope: str
    op: str
    target: Any = None
    input: Any = None
    options: Any = None
    confirm: str | None = None
    payload: Any = None
    """Typed arguments beside the request (a facet call of a paired computer); no surface takes it from a client."""
    respelled: tuple[str, ...] = ()
    """What was read from another server's spelling, for the warnings."""
    stream: Any = None
    """Bytes that travel beside the request, between computers; the call lasts as long as they do."""
    far: FarClient | None = None
    """The client that it is for, where another computer runs it; no surface takes it from a client."""
    batch: tuple[str, ...] = ()
    """The steps of the batch that this call is one of, for an approver to see."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """Bytes that travel beside the envelope, such as a screenshot's pixels."""

    mime: str
    data: bytes


class PreparedList(list[Any]):
    """A list with its JSON beside it, built once for many answers. It must not be changed."""

    def __init__(self, items: Iterable[Any]) -> None:
        super().__init__(items)
        self.json = to_json(list(self))
        self.escaped = to_json(self.json.decode())[1:-1]
        """The JSON as it is written inside a JSON string."""


@dataclass(slots=True)
class Reply:
    """The envelope as plain JSON values (or models), and what travels beside it."""

    envelope: dict[str, Any]
    attachments: list[Attachment] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return bool(self.envelope["ok"])


def parse_call(value: Any) -> Call:
    """The outer envelope of a request. Raises InvalidRequest for anything misspelt or of a wrong type."""
    if type(value) is not dict:
        raise InvalidRequest("An operation is an object {scope, op, target?, input?, options?, confirm?}.")
    if not value.keys() <= CALL_FIELDS:
        unknown = sorted(value.keys() - CALL_FIELDS)
        raise InvalidRequest(
            f"Unknown field {unknown[0]!r}. The envelope has scope, op, target, input, options and confirm.",
            unknown=unknown,
        )
    scope, op = value.get("scope"), value.get("op")
    if type(scope) is not str or not scope:
        raise InvalidRequest("`scope` must name one of the scopes that get_computer_info lists.")
    if type(op) is not str or not op:
        raise InvalidRequest("`op` must be an operation name such as file.read.")
    return Call(scope, op, value.get("target"), value.get("input"), value.get("options"), _token(value.get("confirm")))


def wire_call(call: Call) -> dict[str, Any]:
    """The request as it travels to another computer; `parse_call` gives it back."""
    given = {"target": call.target, "input": call.input, "options": call.options}
    wire = {"scope": call.scope, "op": call.op, **{name: value for name, value in given.items() if value is not None}}
    return wire if call.confirm is None else wire | {"confirm": {"token": call.confirm}}


def _token(confirm: Any) -> str | None:
    if confirm is None:
        return None
    if type(confirm) is not dict or confirm.keys() != {"token"} or type(confirm["token"]) is not str:
        raise InvalidRequest("`confirm` is {token}: the token that confirm.issue gave and a person approved.")
    return str(confirm["token"])


def with_its_token(call: Call) -> Call:
    """The call with the token that lies in its input (`input.confirm.token`, where bridge clients put it) moved to its place.

    The input without `confirm` is what a token is bound to, wherever the token came. Only the token is used, and
    a `confirm` of any other form stays part of the request.
    """
    inside = call.input.get("confirm") if type(call.input) is dict else None
    if type(inside) is not dict or not inside.keys() <= _CONFIRM_FIELDS:
        return call
    token = inside.get("token")
    if token is not None and type(token) is not str:
        raise InvalidRequest("`input.confirm.token` is the token that confirm.issue gave.", field="input.confirm")
    if token is not None and call.confirm is not None and token != call.confirm:
        raise InvalidRequest("Give the confirmation token once.", field="input.confirm")
    rest = {name: value for name, value in call.input.items() if name != "confirm"}
    return replace(call, input=rest, confirm=token if call.confirm is None else call.confirm)


def failure_of(code: str, message: str, *, retryable: bool, details: dict[str, Any]) -> dict[str, Any]:
    """The `error` object of a failed envelope."""
    return {"code": code, "message": message, "retryable": retryable, "details": details}


def error_object(error: LinkError) -> dict[str, Any]:
    """The `error` object of a failure."""
    return failure_of(error.code, error.message, retryable=error.retryable, details=error.details)


def is_envelope(value: Any) -> bool:
    """True for a valid envelope: the form of another computer's answers is not trusted."""
    if type(value) is not dict or type(value.get("ok")) is not bool or type(value.get("operationId")) is not str:
        return False
    error = value.get("error")
    if not value["ok"] and (type(error) is not dict or type(error.get("code")) is not str):
        return False
    effect = value.get("effect")
    return effect is None or (type(effect) is str and effect in get_args(Known))


def error_in(envelope: dict[str, Any]) -> LinkError:
    """Return the error in another computer's failed envelope, as that computer would have raised it."""
    error = envelope.get("error")
    error = error if isinstance(error, dict) else {}
    kind, details = wire_codes().get(str(error.get("code")), ProviderUnavailable), error.get("details")
    named = {name: value for name, value in details.items() if type(name) is str} if isinstance(details, dict) else {}
    return kind(str(error.get("message"))[:1000], **named)

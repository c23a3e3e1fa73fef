"""The text of an answer for a model: the operation's own rendering, warnings, what undo needs, and errors with what to do."""

from typing import Any

from pydantic_core import to_json, to_jsonable_python

from computer_linker.model.effect import Effect
from computer_linker.model.ids import short_id
from computer_linker.registry.catalog import Catalog
from computer_linker.registry.operation import Operation
from computer_linker.registry.text import PLAIN, Text, render

_MAX_ERROR = 2000
_REPEATED = frozenset({"problems", "field", "fields", "rule", "unknown", "errno", "matches", "difference"})
"""Details of an error that its message or the signature has already, or that a program compares."""


_BESIDE_STEPS = Text(quiet=frozenset({"failed"}), empty="")
"""What a batch answers beside its steps; which of them failed is seen there."""


_DID = frozenset({"confirmed", "partial", "unverifiable"})
_NOTHING = "none"
"""What an observation shows that found nothing; `done` is for changes."""


class ModelText:
    """Renders envelopes by the definitions of their operations."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def of(self, envelope: dict[str, Any], target: Any = None, how: Text = PLAIN) -> str:
        """The text of an envelope, or of the answer of a tool that has none, by its `how`."""
        if "ok" not in envelope:
            # An introspection tool's answer: plain values already, and large ones among them.
            return render(envelope, how)
        plain = to_jsonable_python(envelope, by_alias=True)
        if plain["ok"] is False:
            return self._stopped(plain) if _is_batch(plain.get("data")) else _failure(plain, target)
        return self._success(plain, target)

    def _success(self, envelope: dict[str, Any], target: Any) -> str:
        op = self._catalog.by_name.get(str(envelope.get("op")))
        data: Any = envelope.get("data")
        text = self._steps(data) if _is_batch(data) else render(data, op.text if op is not None else PLAIN, target)
        if text == PLAIN.empty and op is not None and op.effect is Effect.OBSERVE:
            text = _NOTHING
        lines = [text, *(f"warning: {warning}" for warning in envelope.get("warnings", ()))]
        effect = envelope.get("effect")
        # That a program's effect is not read back is the rule; of a click it is news.
        usual = ("confirmed",) if op is not None and op.effect is Effect.ACT else ("confirmed", "unverifiable")
        changes = op is not None and can_be_undone(op)
        if changes and effect == "suspected_noop":
            lines.append("nothing was changed")
        elif effect is not None and effect not in usual:
            lines.append(f"effect: {effect}")
        if (changes and effect in _DID) or (isinstance(data, dict) and data.get("undoable")):
            lines.append(f"undo: {short_id(envelope['operationId'])}")
        return "\n".join(lines)

    def _stopped(self, envelope: dict[str, Any]) -> str:
        """A batch with a failed step: what every step gave, the failure among them, then what did not run."""
        error = envelope["error"]
        details = error.get("details") or {}
        not_run = f", {details['notRun']} not run" if details.get("notRun") else ""
        return f"{self._success(envelope, None)}\n{error['code']}: step {details.get('step')} failed{not_run}"

    def _steps(self, data: dict[str, Any]) -> str:
        """The results of a batch, each under its number and name."""
        shown = [
            f"[{number}] {step.get('op', '')}\n{_failure(step) if step.get('ok') is False else self._success(step, None)}"
            for number, step in enumerate(data["results"], 1)
        ]
        rest = render({name: value for name, value in data.items() if name != "results"}, _BESIDE_STEPS)
        return "\n".join([*shown, *([rest] if rest else [])])


def can_be_undone(op: Operation) -> bool:
    """True when file.undo takes back what the operation did: its changes go through `ctx.change`."""
    return op.shows_changes and op.name != "file.undo"


def _is_batch(data: Any) -> bool:
    results = data.get("results") if isinstance(data, dict) else None
    return bool(results) and all(isinstance(step, dict) and "ok" in step and "op" in step for step in results or ())


def _failure(envelope: dict[str, Any], target: Any = None) -> str:
    """`code: sentence`, then what to do."""
    error = envelope["error"]
    message, details = str(error["message"]), error.get("details") or {}
    lines = [f"{error['code']}: {message}"]
    for name, value in details.items():
        if name in _REPEATED or value in (None, "", [], {}, target) or _is_in(value, message):
            continue
        if name == "reason" and isinstance(value, str) and value.isidentifier():
            # One word, such as `missing`, is for programs.
            continue
        shown = value if isinstance(value, str) else _excerpt(value) or _words(value) or to_json(value).decode()
        lines.append(f"{name}: {shown}")
    if error.get("retryable"):
        lines.append("It may work when tried again.")
    text = "\n".join(lines)
    return text if len(text) <= _MAX_ERROR else text[:_MAX_ERROR] + "…"


def _is_in(value: Any, message: str) -> bool:
    """True for a text, or a list of texts, that the message has."""
    if isinstance(value, list):
        return all(isinstance(item, str) and item in message for item in value)
    return isinstance(value, str) and value in message


def _words(value: Any) -> str | None:
    """A list of short texts, one after another; None for another detail."""
    is_plain = isinstance(value, list) and all(isinstance(item, str) and len(item) <= 40 for item in value)
    return ", ".join(value) if is_plain else None


def _excerpt(value: Any) -> str | None:
    """A place in a file as `line N: text`; None for another detail."""
    if isinstance(value, dict) and {"line", "text"} <= value.keys():
        return f"line {value['line']}: {value['text']}"
    return None

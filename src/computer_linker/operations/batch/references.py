"""References in a batch: a string `$N.field` stands for a field of the result of step N."""

import re
from typing import TYPE_CHECKING, Any, Literal

from pydantic_core import to_json, to_jsonable_python

from computer_linker.errors import InvalidRequest
from computer_linker.operations.command.view import BATCH, OF_BATCH
from computer_linker.registry import Context, Effect
from computer_linker.registry.catalog import Catalog
from computer_linker.registry.operation import Operation

if TYPE_CHECKING:
    from computer_linker.operations.batch.run import BatchInput, BatchItem, BatchOptions

_REFERENCE = re.compile(r"\$([1-9][0-9]?)(\.[A-Za-z_]\w{0,63}(?:\.\w{1,64}|\[[0-9]{1,6}\]){0,16})", re.ASCII)
_ESCAPED = re.compile(r"\$(\$+[1-9][0-9]?\.[A-Za-z_].*)", re.DOTALL)
_PART = re.compile(r"\w+")
_MAX_BYTES = 16_000_000
_MAX_DEPTH = 64


def refers(value: Any, depth: int = 0) -> bool:
    """Whether a value has a reference in it, or is nested too deep to be looked through."""
    if type(value) is str:
        return _REFERENCE.fullmatch(value) is not None
    parts = value if type(value) is list else value.values() if type(value) is dict else ()
    return depth > _MAX_DEPTH or any(refers(each, depth + 1) for each in parts)


class References:
    """Replaces references by the results there are so far. What is put in keeps its type.

    Only a whole string is a reference; `$$1.path` is the text `$1.path`.
    """

    def __init__(self) -> None:
        self._results: list[Any] = []
        self._room = _MAX_BYTES

    def add(self, envelope: dict[str, Any]) -> None:
        """Add the result of the next step."""
        self._results.append(envelope)

    def filled(self, value: Any, depth: int = 0) -> Any:
        """The value with every reference replaced. Raises InvalidRequest for one that names nothing."""
        if depth > _MAX_DEPTH:
            raise InvalidRequest(f"A step of a batch is nested at most {_MAX_DEPTH} deep.")
        if type(value) is str:
            return self._text(value)
        if type(value) is list:
            return [self.filled(each, depth + 1) for each in value]
        if type(value) is dict:
            return {name: self.filled(each, depth + 1) for name, each in value.items()}
        return value

    def _text(self, text: str) -> Any:
        if not text.startswith("$"):
            return text
        if (escaped := _ESCAPED.fullmatch(text)) is not None:
            return escaped[1]
        found = _REFERENCE.fullmatch(text)
        return text if found is None else self._found(text, int(found[1]), _PART.findall(found[2]))

    def _found(self, text: str, step: int, parts: list[str]) -> Any:
        if step > len(self._results):
            raise InvalidRequest(
                f"{text[:80]} refers to step {step}, which has no result yet: {len(self._results)} ran before this one. "
                f"Write ${text[:80]} for the text itself.",
                reference=text[:80],
            )
        envelope = self._results[step - 1]
        data = to_jsonable_python(envelope.get("data"), by_alias=True)
        found, value, at = _walk(data, parts)
        if not found and at == 0:
            # `$1.operationId`, and `$1.data.path` for a caller that counts from the envelope.
            found, value, _ = _walk(to_jsonable_python(envelope, by_alias=True), parts)
        if not found and at == 0:
            found, value = _of_all_items(data, parts)
        if not found:
            raise InvalidRequest(_missing(text, step, data, parts, at), reference=text[:80])
        self._room -= len(to_json(value))
        if self._room < 0:
            raise InvalidRequest(f"References of a batch bring in at most {_MAX_BYTES} bytes.", reference=text[:80])
        return value


def _walk(value: Any, parts: list[str]) -> tuple[bool, Any, int]:
    """Whether the path leads to a value, the value (or the last one reached), and how many parts led there."""
    for at, part in enumerate(parts):
        if type(value) is dict and part in value:
            value = value[part]
        elif type(value) is list and part.isascii() and part.isdigit() and len(part) < 7 and int(part) < len(value):
            value = value[int(part)]
        else:
            return False, value, at
    return True, value, len(parts)


def _of_all_items(data: Any, parts: list[str]) -> tuple[bool, Any]:
    """`$1.path` of a search or a find: whether the items of its only list agree on the field, and what they have there."""
    lists = [value for value in data.values() if type(value) is list and value] if type(data) is dict else []
    if len(lists) != 1:
        return False, None
    # An item that is a text is a path, as file.find lists them.
    items = [{"path": item} if type(item) is str else item for item in lists[0]]
    first, value, _ = _walk(items[0], parts)
    return first and all(_walk(item, parts)[:2] == (True, value) for item in items[1:]), value


def _missing(text: str, step: int, data: Any, parts: list[str], at: int) -> str:
    """A sentence that names what there is in the place of what is missing."""
    reached = _walk(data, parts[:at])[1]
    place = f"${step}" + "".join(f".{part}" for part in parts[:at])
    if type(reached) is dict and reached:
        # A list is named by its first item, which is what can be used.
        names = (f"{name}.0" if type(value) is list and value else str(name) for name, value in reached.items())
        there = f"{place} has {', '.join(sorted(names)[:12])}"
    elif type(reached) is list:
        there = f"{place} is a list of {len(reached)}"
    else:
        there = f"{place} is a value without fields" if reached is not None else f"{place} has no data"
    return f"{text[:80]} names nothing: {there}. Write ${text[:80]} for the text itself."


# A batch on a view: its steps that run programs share one, and none changes the folder itself.


def on_view(ctx: Context, input: "BatchInput", options: "BatchOptions") -> "BatchInput":
    """The batch with the view in the options of its steps. Raises InvalidRequest for a step that would change the folder."""
    if not options.view:
        return input
    items = [_placed(ctx, item, options.view) for item in input.operations]
    return input.model_copy(update={"operations": items})


def _placed(ctx: Context, item: "BatchItem", view: Literal[True] | str) -> "BatchItem":
    op = ctx.use(Catalog).by_name.get(item.op)
    if op is None:
        # Refused with its own error when it is reached.
        return item
    if takes_view(op):
        options = item.options or {}
        if options.get("view", view) != view:
            raise InvalidRequest(
                f"{item.op} asks for another view than the batch. Leave `view` out of the step.",
                field="view",
                op=item.op,
            )
        return item.model_copy(update={"options": {**options, "view": _shared(ctx, item) if view is True else view}})
    if op.effect is not Effect.OBSERVE and not op.name.startswith("view."):
        raise InvalidRequest(
            f"{item.op} would change the folder itself, so it cannot be a step of a batch on a view. Run a command instead.",
            field="view",
            op=item.op,
        )
    return item


def _shared(ctx: Context, item: "BatchItem") -> str:
    # Another computer does not know which batch the step is of.
    return f"{BATCH}{ctx.operation_id}" if "/" in (item.scope or ctx.scope.id) else OF_BATCH


def takes_view(op: Operation) -> bool:
    """True for an operation that can run on a view."""
    return "view" in getattr(op.hints.get("options"), "model_fields", {})

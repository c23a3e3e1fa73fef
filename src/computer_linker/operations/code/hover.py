"""code.hover: the type and documentation of a name."""

from typing import Any

from computer_linker.errors import NotFound
from computer_linker.operations.code.asking import At
from computer_linker.operations.code.by_name import ENGINE, asking_or_none, definitions, name_in
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation, shapes

_MOST = 8000


class Hover(Model):
    text: str
    engine: str


@operation(
    "code.hover",
    did="looked up a type in",
    needs={Capability.FS_READ},
    effect=Effect.OBSERVE,
    text=shapes.TEXT,
    examples=[
        Example("What a name is.", {"target": "src/main.py", "input": {"line": 5, "symbol": "greet"}}, runs=False)
    ],
)
async def code_hover(ctx: Context, target: str, input: At) -> Hover:
    """Give the type, signature and documentation of the name at a place."""
    asking = await asking_or_none(ctx, target)
    if asking is None:
        path, name = await name_in(ctx, target, input)
        lines = [
            f"{place.shown}:{one.line}: {one.signature}" for place, one in (await definitions(ctx, path, name))[:10]
        ]
        return _answer("\n".join(lines), ENGINE)
    asking.need("hoverProvider", "the type of a name")
    found = await asking.ask_at("textDocument/hover", input)
    return _answer(_text(found.get("contents") if isinstance(found, dict) else None), asking.engine)


def _answer(text: str, engine: str) -> Hover:
    if not text.strip():
        raise NotFound("Nothing is known of this place.")
    return Hover(text=text if len(text) <= _MOST else text[:_MOST] + "…", engine=engine)


def _text(contents: Any) -> str:
    """The text of hover contents, which come as a text, an object or a list of either."""
    if isinstance(contents, list):
        return "\n".join(filter(None, map(_text, contents)))
    value = contents.get("value") if isinstance(contents, dict) else contents
    return value.strip() if isinstance(value, str) else ""

"""code.map: the skeleton of a source tree within a budget, the most used files first."""

from collections import Counter
from typing import Annotated

from pydantic import Field

from computer_linker.model.paths import RootedPath
from computer_linker.providers.held import guarded, hold_folder
from computer_linker.providers.symbols.extract import Symbol
from computer_linker.providers.symbols.mapping import CodeMaps, Ranked
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation, shapes

_CHARACTERS_A_TOKEN = 3.5
_LINES_A_FILE = 14
_MAX_LINE = 140


class MapOptions(Model):
    max_tokens: Annotated[int, Field(ge=200, le=16_000, description="About how long the map may be.")] = 3000


class CodeMap(Model):
    map: Annotated[str, Field(description="Files, each with its most used definitions and their lines.")]
    files: Annotated[int, Field(description="Source files in the folder.")]
    shown: int
    engine: str
    truncated: bool


@operation(
    "code.map",
    did="mapped the code of",
    needs={Capability.FS_READ},
    effect=Effect.OBSERVE,
    text=shapes.MAP,
    examples=[Example("What matters most in a project.", {"target": "."})],
)
async def code_map(ctx: Context, target: str = ".", options: MapOptions = MapOptions()) -> CodeMap:
    """Show the files that others refer to most, with their main definitions, within a budget."""
    async with hold_folder(guarded(ctx.path(target), ctx.services.home)) as folder:
        ranked = await ctx.use(CodeMaps).ranked(folder)
        path = folder.path
    text, shown = _drawn(ranked, path, int(options.max_tokens * _CHARACTERS_A_TOKEN))
    ctx.note(files=len(ranked.files), shown=shown)
    return CodeMap(
        map=text,
        files=len(ranked.files),
        shown=shown,
        engine="tree-sitter",
        truncated=ranked.is_cut or shown < len(ranked.files),
    )


def _drawn(ranked: Ranked, folder: RootedPath, room: int) -> tuple[str, int]:
    """The map, and how many files are in it."""
    blocks: list[str] = []
    shown = 0
    # Room for the line about the others.
    left = room - 200
    for path in ranked.files:
        if path not in ranked.symbols and shown:
            break
        block = _block(_visible(folder.base + path), ranked.symbols.get(path, []), ranked.uses)
        if len(block) + 1 > left:
            head = block.split("\n", 1)[0]
            if len(head) + 1 > left:
                break
            block = head
        blocks.append(block)
        left -= len(block) + 1
        shown += 1
    if shown < len(ranked.files):
        blocks.append(_others(ranked.files[shown:], folder)[:200])
    return "\n".join(blocks), shown


def _block(path: str, symbols: list[Symbol], uses: dict[str, int]) -> str:
    outer = [one for one in symbols if uses.get(one.name) or (not one.container and one.kind != "variable")]
    best = sorted(outer, key=lambda one: (-uses.get(one.name, 0), bool(one.container), one.line))[:_LINES_A_FILE]
    lines = [path]
    for symbol in sorted(best, key=lambda one: one.line):
        text = f"  {'  ' if symbol.container else ''}{symbol.line}: {symbol.signature}"
        lines.append(text if len(text) <= _MAX_LINE else text[:_MAX_LINE] + "…")
    return "\n".join(lines)


def _others(files: list[str], folder: RootedPath) -> str:
    folders = Counter(path.rpartition("/")[0].split("/")[0] or "." for path in files)
    named = ", ".join(f"{_visible(folder.base + name)} {count}" for name, count in folders.most_common(8))
    return f"and {len(files)} more files: {named}"


def _visible(path: str) -> str:
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")

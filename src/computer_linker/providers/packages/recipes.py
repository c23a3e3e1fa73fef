"""What a target of a Makefile or a recipe of a justfile runs, as its file has it, for a person to read. Nothing is executed."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from computer_linker.providers.packages.manifests import Source

_MOST_LINES = 400
_ALWAYS_MADE = ("Makefile", "makefile", "GNUmakefile", ".DEFAULT", ".EXTRA_PREREQS")
"""Targets that make looks at whatever it was asked for: it remakes its own file first."""
_BETWEEN = re.compile(r"\s*(?:#|(?:ifeq|ifneq|ifdef|ifndef|else|endif)\b|$)")
"""Lines that do not end the body of a rule."""


class _Grammar(NamedTuple):
    rule: re.Pattern[str]
    body: tuple[str, ...]
    setting: re.Pattern[str]
    use: re.Pattern[str]
    at_reading: re.Pattern[str]
    """A line outside of rules that runs something, or brings in other files, whatever the target is."""


_GRAMMARS: dict[Source, _Grammar] = {
    "Makefile": _Grammar(
        re.compile(r"(?P<names>[^\s:#=][^:#=]*?)\s*::?(?![:=])(?P<needs>.*?)(?:;.*)?$"),
        ("\t",),
        re.compile(r"\s*(?:(?:export|override|private)\s+)*(?:define\s+)?(?P<name>[\w.-]+)\s*(?:[:?+!]*=|$)"),
        re.compile(r"\$[({]?(?P<name>[\w.-]+)"),
        re.compile(r".*\$[({](?:shell|eval|file)\b|.*!=|\s*[-s]?include\s|\s*\.RECIPEPREFIX|\s*load\s"),
    ),
    "justfile": _Grammar(
        re.compile(r"@?(?P<names>[A-Za-z_][\w-]*)(?:\s[^:\n]*)?:(?!=)(?P<needs>.*)$"),
        (" ", "\t"),
        re.compile(r"(?:export\s+)?(?P<name>[A-Za-z_][\w-]*)\s*:="),
        re.compile(r"\{\{\s*(?P<name>[A-Za-z_][\w-]*)"),
        re.compile(r".*(?:`|\bshell\()|(?:import|mod|set)\b"),
    ),
}  # fmt: skip


class _Block(NamedTuple):
    """A rule with its body, or a line outside of rules."""

    rules: frozenset[str]
    needs: frozenset[str]
    setting: str | None
    lines: tuple[str, ...]
    runs_always: bool


def recipe_lines(source: Source, text: str, name: str) -> tuple[str, ...]:
    """The lines of the file that say what a target runs: its rule, those it needs, their variables, and what every use runs.

    Empty for other manifests. Pattern rules and included files are not followed; the line that includes them is shown.
    """
    grammar = _GRAMMARS.get(source)
    if grammar is None:
        return ()
    blocks = list(_blocks(text.splitlines()[:20_000], grammar))
    kept = {at for at, block in enumerate(blocks) if block.runs_always}
    while True:
        rules = {name, *_ALWAYS_MADE}.union(*(blocks[at].needs for at in kept))
        used = {found["name"] for at in kept for line in blocks[at].lines for found in grammar.use.finditer(line)}
        reached = {at for at, block in enumerate(blocks) if block.rules & rules or block.setting in used}
        if reached <= kept:
            break
        kept |= reached
    lines = [line for at in sorted(kept) for line in blocks[at].lines]
    cut = [f"... {len(lines) - _MOST_LINES} more lines"] if len(lines) > _MOST_LINES else []
    return (*lines[:_MOST_LINES], *cut)


def _blocks(lines: list[str], grammar: _Grammar) -> Iterator[_Block]:
    """The file cut into rules with their bodies, and settings; each with its continued lines."""
    at = 0
    while at < len(lines):
        first = at
        at = _end_of_line(lines, at)
        whole = " ".join(line.removesuffix("\\") for line in lines[first:at])[:2000]
        setting, rule = grammar.setting.match(whole), grammar.rule.match(whole)
        if setting is not None:
            if "define" in whole.split()[:3]:
                while at < len(lines) and lines[at - 1].strip() != "endef":
                    at += 1
            rules, needs = frozenset[str](), frozenset[str]()
        else:
            rules = frozenset(rule["names"].split()) if rule is not None else frozenset()
            needs = frozenset(re.findall(r"[\w./@%+-]+", rule["needs"])) if rule is not None else frozenset()
            while (
                rule is not None
                and at < len(lines)
                and (lines[at].startswith(grammar.body) or _BETWEEN.match(lines[at]))
            ):
                at = _end_of_line(lines, at)
        block = tuple(line for line in lines[first:at] if line.strip() and not line.startswith("#"))
        if block:
            runs = not rules and any(grammar.at_reading.match(line) for line in block)
            yield _Block(rules, needs, None if setting is None else setting["name"], block, runs)


def _end_of_line(lines: list[str], at: int) -> int:
    """The place behind a line and those that continue it."""
    while lines[at].endswith("\\") and at + 1 < len(lines):
        at += 1
    return at + 1

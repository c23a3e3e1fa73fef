"""Writes docs/reference from the catalogue: `python -m computer_linker.registry.reference`. Never edited by hand.

The answers of the examples are read from `examples.json` there, which the tests record.
"""

import importlib
import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from computer_linker.model.capability import IMPLIED, Capability
from computer_linker.registry.catalog import Catalog, collect
from computer_linker.registry.cli_options import command_line, fields_of, type_name
from computer_linker.registry.model_text import ModelText
from computer_linker.registry.operation import Operation
from computer_linker.registry.samples import sample_answer
from computer_linker.registry.schema import parameter_schemas, request_schema, result_schema, signature

SCHEMA_FILE = "computer_operation.schema.json"
CONFIG_SCHEMA_FILE = "config.schema.json"
COMMANDS_PAGE = "cli.md"
"""Written by the cli package, which this package does not import."""
OWNER_PAGE = "owner.md"
GLOSSARY_PAGE = "glossary.md"
"""Written by hand."""
EXAMPLES_FILE = "examples.json"
"""The recorded answers of the examples, by operation and title; written by tests/registry/test_examples.py."""
_FOLDER = Path("docs/reference")
_MAX_ANSWER = 1200
_MADE = "<!-- Written by `make docs` from the catalogue; changes here are lost. -->\n\n"
HEADERS = ("operation", "needs", "effect", "scope", "boundary")
BOUNDARIES = {
    "path-enforced": "every path is opened by the kernel beneath the scope's root",
    "sandboxed": "the program runs inside the kernel boundary that the result names",
    "scoped-metadata": "facts about the scope or the service only",
    "desktop": "the person's screen, windows or input devices",
    "mixed": "as the operations it contains",
}


def whole_catalog() -> Catalog:
    """Every operation there is. The package is imported by name: the registry depends on no operation."""
    return collect(importlib.import_module("computer_linker.operations"))


def pages(catalog: Catalog, folder: Path = _FOLDER) -> dict[str, str]:
    """Every file of the reference by name."""
    recorded = folder / EXAMPLES_FILE
    answers = Answers(json.loads(recorded.read_text("utf-8")) if recorded.exists() else {}, ModelText(catalog))
    nouns: dict[str, list[Operation]] = {}
    for op in catalog.operations.values():
        nouns.setdefault(op.name.split(".")[0], []).append(op)
    made = {f"{noun}.md": _page(noun, ops, answers) for noun, ops in nouns.items()}
    made["README.md"] = _index(nouns)
    made[OWNER_PAGE] = _owner_page(collect(importlib.import_module("computer_linker.owner")))
    made["capabilities.md"] = _capabilities(catalog)
    made["errors.md"] = _errors()
    made[SCHEMA_FILE] = _json(request_schema(catalog.operations.values()))
    made[CONFIG_SCHEMA_FILE] = _json(_config_schema())
    return made


def write(folder: Path) -> list[str]:
    """Write every page and remove pages of operations that are gone; the names that changed."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = pages(whole_catalog(), folder)
    changed = []
    for name, text in wanted.items():
        path = folder / name
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")
            changed.append(name)
    for path in folder.iterdir():
        if path.name not in wanted and path.name not in (COMMANDS_PAGE, GLOSSARY_PAGE, EXAMPLES_FILE):
            path.unlink()
            changed.append(path.name)
    return sorted(changed)


def main(argv: list[str]) -> int:
    """Write into the folder named, docs/reference when none is."""
    changed = write(Path(argv[0]) if argv else _FOLDER)
    sys.stdout.write(f"{len(changed)} changed{': ' + ' '.join(changed) if changed else ''}\n")
    return 0


def _index(nouns: dict[str, list[Operation]]) -> str:
    lines = [_MADE + "# Reference\n"]
    lines += [f"- [{noun}]({noun}.md): {', '.join(f'`{op.name}`' for op in ops)}" for noun, ops in nouns.items()]
    lines += [
        "- [Capabilities](capabilities.md): what each operation needs, and what each capability allows",
        "- [Errors](errors.md): every error code",
        f"- [The owner's operations]({OWNER_PAGE}): what only the terminal may do",
        f"- [Commands]({COMMANDS_PAGE}): the command line",
        f"- [Glossary]({GLOSSARY_PAGE}): one word for one thing",
        f"- [{SCHEMA_FILE}]({SCHEMA_FILE}): the JSON Schema of a request",
        f"- [{CONFIG_SCHEMA_FILE}]({CONFIG_SCHEMA_FILE}): the JSON Schema of config.json",
    ]
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Answers:
    """The recorded answers, and how a model reads them."""

    recorded: dict[str, dict[str, Any]]
    text: ModelText

    def shown(self, op: Operation, title: str, target: Any) -> list[str]:
        """Both renderings of an example's answer: as it was recorded, else of its form."""
        envelope = self.recorded.get(f"{op.name}: {title}")
        what = "Its answer"
        if envelope is None:
            if title != op.examples[0].title or any(key.startswith(f"{op.name}: ") for key in self.recorded):
                return []
            envelope, what = sample_answer(op), "An answer of its form, with values made up"
        blocks = (("json", json.dumps(envelope)), ("model", self.text.of(envelope, target)))
        lines = []
        for name, text in blocks:
            cut = text if len(text) <= _MAX_ANSWER else text[:_MAX_ANSWER] + " ..."
            lines += [
                f"{what}, rendered as `{name}`:",
                "",
                "```text",
                cut,
                "```",
                "",
            ]
        return lines


def _page(noun: str, ops: list[Operation], answers: Answers) -> str:
    return _MADE + f"# {noun}\n\n" + "\n".join(_section(op, answers) for op in ops)


def _owner_page(catalog: Catalog) -> str:
    lines = [_MADE + "# The owner's operations\n"]
    lines += ["Each is a command of the same words; no client can name one. Acts are in the history.\n"]
    for op in catalog.operations.values():
        parts = parameter_schemas(op).properties
        lines += [f"## {op.name}\n", op.summary, "", f"Effect: {op.effect.value}.", ""]
        lines += _fields("input", parts["input"]) if "input" in parts else []
        lines += _fields("result", result_schema(op))
    return "\n".join(lines)


def _section(op: Operation, answers: Answers) -> str:
    parts = parameter_schemas(op)
    lines = [f"## {op.name}\n", f"`{signature(op)}`\n", op.summary, ""]
    lines += [f"Needs {needs_text(op)}. Effect: {op.effect.value}. Scope: {op.on}. Boundary: {op.boundary}."]
    if op.aliases:
        lines += [f"Also called {', '.join(f'`{alias}`' for alias in op.aliases)}."]
    lines.append("")
    if "target" in parts.properties:
        optional = "" if "target" in parts.required else " (may be left out)"
        lines += [f"**target**{optional}: {type_name(parts.properties['target'])}", ""]
    for part in ("input", "options"):
        if part in parts.properties:
            lines += _fields(part, parts.properties[part])
    lines += _fields("data", result_schema(op))
    for example in op.examples:
        lines += [example.title, "", "```json", json.dumps(_request(op, example.request)), "```", ""]
        lines += ["```sh", command_line(op.name, example.request), "```", ""]
        lines += answers.shown(op, example.title, example.request.get("target"))
    return "\n".join(lines)


def _request(op: Operation, request: dict[str, Any]) -> dict[str, Any]:
    return {"scope": request.get("scope", "app"), "op": op.name, **{k: v for k, v in request.items() if k != "scope"}}


def _fields(title: str, schema: dict[str, Any]) -> list[str]:
    """The fields, then those of the models they name."""
    lines = _table(title, fields_of(schema))
    for name, inner in schema.get("$defs", {}).items():
        if inner.get("properties") and f"#/$defs/{name}" != schema.get("$ref"):
            lines += _table(name, fields_of({**inner, "$defs": schema["$defs"]}))
    return lines


def _table(title: str, fields: dict[str, Any]) -> list[str]:
    if not fields:
        return []
    lines = [f"**{title}**", "", "| field | type | default | |", "|---|---|---|---|"]
    for name, field in fields.items():
        default = f"`{json.dumps(field['default'])}`" if field.get("default") is not None else ""
        lines.append(
            f"| `{name}` | {_cell(type_name(field))} | {_cell(default)} | {_cell(field.get('description', ''))} |"
        )
    return [*lines, ""]


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _capabilities(catalog: Catalog) -> str:
    ops = list(catalog.operations.values())
    lines = [_MADE + "# Capabilities\n", _row(HEADERS), _row(["---"] * len(HEADERS))]
    lines += [_row([f"`{row[0]}`", *row[1:]]) for row in rows(ops)]
    lines += ["", "| capability | implies | operations that ask for it |", "|---|---|---|"]
    for capability, names in allowed_by(ops).items():
        lines.append(_row([f"`{capability}`", ", ".join(implied_by(capability)), ", ".join(names)]))
    lines += ["", "Boundaries:", "", *(f"- **{name}**: {text}." for name, text in BOUNDARIES.items())]
    return "\n".join(lines) + "\n"


def _errors() -> str:
    from computer_linker.errors import wire_codes

    lines = [_MADE + "# Errors\n", _row(["code", "retryable"]), _row(["---", "---"])]
    lines += [_row([f"`{code}`", "yes" if kind.retryable else "no"]) for code, kind in sorted(wire_codes().items())]
    return "\n".join(lines) + "\n"


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _config_schema() -> dict[str, Any]:
    from computer_linker.config.schema import Config

    schema = Config.model_json_schema(by_alias=True, mode="validation")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def rows(operations: Iterable[Operation]) -> list[tuple[str, str, str, str, str]]:
    """Return one row per operation, as plain text."""
    return [(op.name, needs_text(op), op.effect.value, op.on, op.boundary) for op in operations]


def needs_text(op: Operation) -> str:
    """The capabilities an operation asks for."""
    every = " and ".join(sorted(op.needs))
    some = " or ".join(sorted(op.needs_any))
    if every and some:
        return f"{every}, and {some}"
    return every or some or "nothing"


def allowed_by(operations: Iterable[Operation]) -> dict[str, list[str]]:
    """Each capability with the operations that ask for it."""
    listed: dict[str, list[str]] = {capability.value: [] for capability in Capability}
    for op in operations:
        for capability in sorted(op.needs | op.needs_any):
            listed[capability.value].append(op.name)
    return listed


def implied_by(capability: str) -> list[str]:
    """What a capability brings along."""
    return sorted(IMPLIED.get(Capability(capability), frozenset()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

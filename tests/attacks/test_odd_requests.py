"""Odd values in every field of every operation: each is answered with a code of its own, none fails inside the service."""

import random
from pathlib import Path
from typing import Any

import anyio
import pytest

from computer_linker.computer.simulated import SimulatedComputer
from computer_linker.registry.schema import parameter_schemas
from support.repositories import git
from support.road import Road, computer_scope, folder_scope

pytestmark = pytest.mark.anyio

ODD: list[Any] = [
    None, True, False, 0, -1, 2**63, 10**30, 1.5, 1e308, "", "\0", "a\0b", "../x", "/etc/passwd", "@\u00b2/x", "\u00b2",
    "x" * 5000, "\x1b[31m", [], ["a"], [[]], {}, {"a": 1}, {"$ref": "x"}, "%s%n", "e1.abc", "proc_x", "art_x",
    "\U0001f4a5", "\u202e", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "-rf", "--help", "a.txt", "a.txt/b", "sub", ".git", "a\nb",
]  # fmt: skip
TARGETS = ["a.txt", ".", "sub", "primary", "focused", "editor"]
STARTS_PROGRAMS = ("browser.", "codex.")
"""What these would start is tested elsewhere."""


def value(dice: random.Random, schema: dict[str, Any]) -> Any:
    """Something for one field: as odd as can be, or of its own type and yet strange."""
    if dice.random() < 0.5:
        return dice.choice(ODD)
    match schema.get("type"):
        case "string":
            return dice.choice([*schema.get("enum", []), *(one for one in ODD if isinstance(one, str))])
        case "integer":
            return dice.choice([0, 1, 2, -1, 100, 2**31, 2**63, 10**18])
        case "number":
            return dice.choice([0, 0.01, 1.5, -1, 1e308])
        case "boolean":
            return dice.choice([True, False])
        case "array":
            return [dice.choice(ODD) for _ in range(dice.randrange(3))]
    return dice.choice(ODD)


def fields(dice: random.Random, schema: dict[str, Any] | None) -> dict[str, Any]:
    known = (schema or {}).get("properties", {})
    made = {name: value(dice, about) for name, about in known.items() if dice.random() < 0.5}
    # Not to be waited for: how long an operation may last is not what is tried here.
    return {name: one for name, one in made.items() if not name.endswith("Seconds")}


@pytest.mark.parametrize("calls", [2_000, pytest.param(50_000, marks=[pytest.mark.soak, pytest.mark.timeout(3600)])])
async def test_no_odd_request_fails_inside_the_service(tmp_path: Path, calls: int) -> None:
    dice, computer = random.Random(20261116), SimulatedComputer()
    computer.world.open("editor", "Untitled")
    scopes = [folder_scope(tmp_path / "root", allowedCommands=["true"]), computer_scope()]
    async with Road.open(tmp_path, scopes, computer) as road:
        (road.root / "sub").mkdir()
        (road.root / "a.txt").write_text("one\n")
        git(road.root, "init", "-q")
        operations = [one for one in road.app.catalog.operations.values() if not one.name.startswith(STARTS_PROGRAMS)]
        for _ in range(calls):
            op = dice.choice(operations)
            schemas = parameter_schemas(op).properties
            given: dict[str, Any] = {
                name: fields(dice, schemas[name]) for name in ("input", "options") if name in schemas
            }
            target = dice.choice([*ODD, *TARGETS * 4])
            with anyio.fail_after(60):
                told = await road.call(op.name, target, scope="desk" if op.on == "computer" else "app", **given)
            assert told["ok"] or "inside the service" not in told["error"]["message"], (op.name, target, given)

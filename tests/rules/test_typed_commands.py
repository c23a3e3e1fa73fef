"""No untyped object crosses between the command line and the service: what commands import there takes and returns models."""

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "computer_linker"
BEHIND = ("service", "owner", "serve")
WIRE = {"serve.owner_calls.call_here", "serve.owner_calls.call_without_service"}
"""An owner's call in the command's own process: its input and envelope are the wire's, as over the private socket."""


def imported(code: str) -> Iterator[tuple[str, str]]:
    """The names that a module takes from the packages behind the command line, each with its module."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("computer_linker."):
            module = node.module.removeprefix("computer_linker.")
            if module.partition(".")[0] in BEHIND:
                yield from ((module, name.name) for name in node.names)


def untyped(code: str, name: str) -> bool:
    """Whether the function of this name takes or returns an object without a model."""
    for node in ast.parse(code).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            hints = [node.returns, *(each.annotation for each in (*node.args.args, *node.args.kwonlyargs))]
            return any(hint is not None and "dict[str, Any]" in ast.unparse(hint) for hint in hints)
    return False


def test_commands_and_service_exchange_models() -> None:
    taken = {each for path in (SOURCE / "cli").glob("*.py") for each in imported(path.read_text())}
    assert len(taken) > 20, "the rule reads the imports"
    found = {
        f"{module}.{name}"
        for module, name in taken
        if (file := SOURCE / f"{module.replace('.', '/')}.py").exists() and untyped(file.read_text(), name)
    }
    assert found == WIRE


def test_the_rule_sees() -> None:
    assert list(imported("def f():\n    from computer_linker.service.x import y\n")) == [("service.x", "y")]
    assert untyped("def y(a: int) -> dict[str, Any]: ...", "y")
    assert untyped("async def y(a: list[dict[str, Any]]) -> int: ...", "y")
    assert not untyped("def y(a: Model) -> Model: ...", "y")

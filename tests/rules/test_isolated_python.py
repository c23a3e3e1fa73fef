"""Every Python that the project starts is isolated: a file in the working folder is never imported."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "computer_linker"
FILES = [path for path in sorted(SOURCE.rglob("*.py")) if "sys.executable" in path.read_text("utf-8")]


def not_isolated(code: str) -> list[str]:
    """The command lines that begin a Python without `-I`, each with its line."""
    found = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.List | ast.Tuple):
            words: list[ast.expr] = node.elts
        elif isinstance(node, ast.Dict):
            # As a client's settings have it: {"command": ..., "args": [...]}.
            args = node.values[1:2]
            words = [*node.values[:1], *(args[0].elts if args and isinstance(args[0], ast.List) else [])]
        else:
            continue
        if words and ast.unparse(words[0]) == "sys.executable" and [ast.unparse(one) for one in words[1:2]] != ["'-I'"]:
            found.append(f"{node.lineno}: {ast.unparse(node)}")
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_python_is_started_isolated(path: Path) -> None:
    assert not_isolated(path.read_text("utf-8")) == []


@pytest.mark.parametrize(
    "code",
    [
        'run([sys.executable, "-m", "x"])',
        "argv = (sys.executable, *more)",
        "given = [sys.executable]",
        '{"command": sys.executable, "args": ["main.py"]}',
    ],
)
def test_the_rule_sees(code: str) -> None:
    assert not_isolated(code)


def test_the_rule_passes_isolated_ones() -> None:
    assert (
        not_isolated('run([sys.executable, "-I", "-m", "x"])\n{"command": sys.executable, "args": ["-I", "x"]}') == []
    )

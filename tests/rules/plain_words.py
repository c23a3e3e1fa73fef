"""Counts words that a reader from outside does not understand, in docstrings and identifiers of the source.

`python tests/rules/plain_words.py` lowers the numbers in plain_words.json to what is counted; it never raises one.
"""

import ast
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "computer_linker"
COUNTS = Path(__file__).with_name("plain_words.json")
IN_NAMES = "road lane desk office door seat leash crowd halves foresight farewell wish".split()
"""Counted as parts of identifiers, and as words of docstrings; a plural counts too."""
IN_DOCSTRINGS = ["the way", "is told", "says", "knows", "words", "is dear", "whoever", "somebody", "nobody"]
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def counted(files: list[Path]) -> dict[str, int]:
    """How often each word occurs in these files."""
    names: Counter[str] = Counter()
    texts: list[str] = []
    for path in files:
        tree = ast.parse(path.read_text("utf-8"))
        names.update(part.lower() for name in _names(tree, path) for part in _PARTS.findall(name))
        texts += _docstrings(tree)
    text = "\n".join(texts).lower()
    found = dict.fromkeys([*IN_NAMES, *IN_DOCSTRINGS], 0)
    for word in IN_NAMES:
        plural = word if word == "halves" else f"{word}(?:s|es)?"
        found[word] = sum(count for name, count in names.items() if re.fullmatch(plural, name))
        found[word] += len(re.findall(rf"\b{plural}\b", text))
    for word in IN_DOCSTRINGS:
        found[word] = len(re.findall(rf"\b{word}\b", text))
    return found


def _names(tree: ast.Module, path: Path) -> Iterator[str]:
    """Each name where it is made: a module, a class, a function, a parameter, a variable, an attribute."""
    yield path.stem
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def _docstrings(tree: ast.Module) -> Iterator[str]:
    """Docstrings, also those that stand below a field."""
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED):
            for statement in node.body:
                if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                    yield str(statement.value.value)


def main() -> int:
    kept: dict[str, int] = json.loads(COUNTS.read_text())
    now = counted(sorted(SOURCE.rglob("*.py")))
    grown = [f"{word}: {now[word]}, was {kept[word]}" for word in now if now[word] > kept.get(word, now[word])]
    COUNTS.write_text(json.dumps({word: min(now[word], kept.get(word, now[word])) for word in now}, indent=2) + "\n")
    print("\n".join(grown) or "no word has become more frequent")
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())

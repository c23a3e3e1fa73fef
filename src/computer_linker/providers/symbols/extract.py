"""The definitions of one source text, by its grammar."""

import importlib
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from computer_linker.providers.symbols.languages import BY_NAME, METHOD_HOLDERS, Language

_MAX_SIGNATURE = 200
_MAX_NAME = 200
_MAX_SYMBOLS = 20_000


class Symbol(NamedTuple):
    """A definition and where it is; lines count from 1."""

    name: str
    kind: str
    line: int
    end_line: int
    container: str
    signature: str


class Grammar(NamedTuple):
    parser: Any
    query: Any
    kinds: list[str]
    """The kind of each pattern of the query, by its index."""
    language: Language


class GrammarMissing(Exception):
    """This language's grammar is not installed."""


@lru_cache(maxsize=32)
def grammar(name: str) -> Grammar:
    """The parser of a language, loaded on first use. Raises GrammarMissing."""
    language = BY_NAME[name]
    try:
        from tree_sitter import Language as TreeLanguage
        from tree_sitter import Parser, Query

        module = importlib.import_module(language.module)
    except ImportError as error:
        raise GrammarMissing(name) from error
    tree = TreeLanguage(getattr(module, language.function)())
    patterns = [
        (f"({node}) @definition", kind)
        for node, kind in language.definitions.items()
        if tree.id_for_node_kind(node, True) is not None
    ]
    patterns += language.patterns
    query = Query(tree, "\n".join(pattern for pattern, _ in patterns))
    return Grammar(Parser(tree), query, [kind for _, kind in patterns], language)


def symbols_in(content: bytes, language: str) -> list[Symbol]:
    """Every definition in the order of the text."""
    rules = grammar(language)
    root = rules.parser.parse(content).root_node
    found: dict[int, tuple[Any, str, str]] = {}
    for node, name, kind in _captured(rules, root):
        # An arrow function bound to a name matches both as a function and as a variable; the first kind wins.
        if name and node.id not in found and len(found) < _MAX_SYMBOLS:
            found[node.id] = (node, name, kind)
    return sorted(
        (_symbol(node, name, kind, found, rules.language, content) for node, name, kind in found.values()),
        key=lambda symbol: (symbol.line, -symbol.end_line, symbol.name),
    )


def _captured(rules: Grammar, root: Any) -> Iterator[tuple[Any, str, str]]:
    from tree_sitter import QueryCursor

    for index, captures in sorted(QueryCursor(rules.query).matches(root), key=lambda match: match[0]):
        node = captures["definition"][0]
        named = captures.get("name")
        name = _text(named[0]) if named else _name_of(node)
        yield node, name, _exact_kind(node, rules.kinds[index], rules.language.name)


def _symbol(
    node: Any, name: str, kind: str, found: dict[int, tuple[Any, str, str]], language: Language, content: bytes
) -> Symbol:
    container, holder = _container(node, found, language)
    if kind == "function" and holder in METHOD_HOLDERS:
        kind = "method"
    return Symbol(
        name[:_MAX_NAME],
        kind,
        node.start_point[0] + 1,
        # A node that ends with the newline ends on the line before.
        max(node.start_point[0], node.end_point[0] - (node.end_point[1] == 0)) + 1,
        container[:_MAX_NAME],
        _signature(node, content),
    )


def _container(node: Any, found: dict[int, tuple[Any, str, str]], language: Language) -> tuple[str, str]:
    receiver = node.child_by_field_name("receiver")
    if receiver is not None and language.name == "go":
        return _text(receiver).strip("()").split()[-1].lstrip("*").split("[")[0], "struct"
    names: list[str] = []
    holder = ""
    parent = node.parent
    while parent is not None:
        if parent.id in found:
            names.append(found[parent.id][1])
            holder = holder or found[parent.id][2]
        elif parent.type in language.containers:
            named = parent.child_by_field_name(language.containers[parent.type])
            if named is not None:
                names.append(_text(named))
                holder = holder or "impl"
        parent = parent.parent
    return ".".join(reversed(names)), holder


def _exact_kind(node: Any, kind: str, language: str) -> str:
    if language == "go" and node.type == "type_spec":
        inner = node.child_by_field_name("type")
        return {"struct_type": "struct", "interface_type": "interface"}.get(inner.type if inner else "", kind)
    if language in ("swift", "kotlin") and node.type == "class_declaration":
        for child in node.children[:6]:
            if child.type in ("struct", "enum", "interface", "extension", "actor", "class"):
                return str(child.type)
    return kind


def _name_of(node: Any) -> str:
    if node.type in ("struct_specifier", "union_specifier", "enum_specifier", "class_specifier") and (
        node.child_by_field_name("body") is None
    ):
        return ""
    named = node.child_by_field_name("name")
    if named is None:
        named = node.child_by_field_name("declarator")
        while named is not None and named.child_by_field_name("declarator") is not None:
            named = named.child_by_field_name("declarator")
    if named is None:
        named = next((child for child in node.named_children if child.type.endswith("identifier")), None)
    return "" if named is None else _text(named)


def _signature(node: Any, content: bytes) -> str:
    body = node.child_by_field_name("body")
    end = body.start_byte if body is not None else node.end_byte
    text = content[node.start_byte : min(end, node.start_byte + 4 * _MAX_SIGNATURE)].decode("utf-8", "replace")
    if body is None:
        text = text.split("\n", 1)[0]
    text = " ".join(text.split()).rstrip(" {:=")
    return text if len(text) <= _MAX_SIGNATURE else text[:_MAX_SIGNATURE] + "…"


def _text(node: Any) -> str:
    return " ".join(bytes(node.text or b"").decode("utf-8", "replace").split())

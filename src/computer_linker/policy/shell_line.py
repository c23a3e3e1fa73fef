"""Reads the programs of a shell line, as far as they can be read without running it.

What is read serves the lists of allowed and denied commands. It is no boundary: a program may start any other, and the kernel
sandbox around the line holds whatever was read.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from computer_linker.errors import InvalidRequest
from computer_linker.policy.command_line import MAX_TEXT

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

_GLOBS = re.compile(r"[*?\[]|[@!+]\(")
_BRACES = re.compile(r"\{[^{}]*(?:,|\.\.)[^{}]*\}|\{.*\{|,.*\}")
_CONTINUED = re.compile(r"\S\\\n\S")
_MAX_HERE_DOCUMENTS = 100
"""The grammar's time grows with the square of their number."""
_MAX_LOOKED_AT = 1_000_000
_MAX_COMMANDS = 500
_ARITHMETIC = frozenset(
    "arithmetic_expansion compound_statement subscript test_command expansion binary_expression".split()
)
_SET_IN_ARITHMETIC = re.compile(r"(?<![$\w{])([A-Za-z_]\w*)\s*(?:[-+*/%&|^]|<<|>>)?=(?!=)")
_RUN_IN_SUBSCRIPT = {
    "raw_string": re.compile(r"\w\[[^]]*(?:\$\(|`)"),
    "string": re.compile(r"\w\[[^]]*\\(?:\$\(|`)"),
}


@dataclass(frozen=True, slots=True)
class Unknown:
    """A word that only the running shell has: `many` may become any number of tokens, `is_option` may begin with `-`."""

    many: bool
    is_option: bool = True


Word = str | Unknown
Words = tuple[Word, ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """What can be read of a line."""

    commands: tuple[Words, ...]
    """Each command with its arguments, those in substitutions and functions too."""
    assigned: frozenset[str]
    """Variables that it sets."""
    functions: frozenset[str]
    problem: str = ""
    """Why it cannot be read as a whole; empty when it can."""


def read_line(text: str) -> Reading:
    """The programs of a line of shell. Raises InvalidRequest for text that no shell should get."""
    _check(text)
    if text.count("<<") > _MAX_HERE_DOCUMENTS:
        return Reading((), frozenset(), frozenset(), f"it has more than {_MAX_HERE_DOCUMENTS} here-documents")
    root = _parser().parse(text.encode("utf-8")).root_node
    if root.has_error:
        return Reading((), frozenset(), frozenset(), "its syntax is not understood")
    reader = _Reader(text.encode("utf-8"))
    reader.walk(root)
    if _CONTINUED.search(text):
        reader.problem = "a word in it goes on in the next line"
    return Reading(tuple(reader.commands), frozenset(reader.assigned), frozenset(reader.functions), reader.problem)


@lru_cache(maxsize=1)
def _parser() -> "Parser":
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


def _check(text: str) -> None:
    if len(text) > MAX_TEXT:
        raise InvalidRequest(f"A shell line has at most {MAX_TEXT} characters; longer is refused, not cut.")
    for char in text:
        if char in "\n\t" or (char.isascii() and char.isprintable()):
            continue
        if not char.isprintable() or unicodedata.category(char) == "Zs":
            raise InvalidRequest(f"The shell line holds the character U+{ord(char):04X}, which cannot be seen in it.")


class _Reader:
    """Walks the syntax tree."""

    def __init__(self, source: bytes) -> None:
        self._source = source
        self.commands: list[Words] = []
        self.assigned: set[str] = set()
        self.functions: set[str] = set()
        self.problem = ""
        self._looked_at = 0
        """Bytes of nodes that were searched: the text of a nested one is searched again for each that holds it."""

    def walk(self, root: "Node") -> None:
        waiting = [root]
        while waiting:
            node = waiting.pop()
            self._take(node)
            waiting.extend(reversed(node.named_children))
            if len(self.commands) > _MAX_COMMANDS:
                self.problem = f"it has more than {_MAX_COMMANDS} commands"
                return
            if self._looked_at > _MAX_LOOKED_AT:
                self.problem = "it nests too deep"
                return

    def _take(self, node: "Node") -> None:
        if node.type in _ARITHMETIC and (node.type != "compound_statement" or self._text(node).startswith("((")):
            self.assigned |= set(_SET_IN_ARITHMETIC.findall(self._text(node)))
        match node.type:
            case "raw_string" | "string" if _RUN_IN_SUBSCRIPT[node.type].search(self._text(node)):
                # As a variable's name, and in arithmetic, a shell runs what its index holds.
                self.problem = "a text in it has a command in an index"
            case "command":
                self.commands.append(tuple(self._words(node)))
            case "declaration_command" | "unset_command":
                names = [child for child in node.named_children if child.type != "variable_assignment"]
                self.commands.append((self._text(node).split(None, 1)[0], *map(self._word, names)))
                self.assigned |= {self._text(child) for child in names}
            case "test_command":
                self.commands.append(("[", Unknown(many=True)))
            case "variable_assignment":
                self._assign(node.child_by_field_name("name"))
            case "for_statement" | "select_statement":
                self._assign(node.child_by_field_name("variable"))
            case "function_definition":
                name = node.child_by_field_name("name")
                self.functions.add("" if name is None else self._text(name))
            case "redirected_statement":
                self._check_redirects(node)
            case "heredoc_redirect":
                self._check_heredoc(node)
            case "ERROR":
                self.problem = "its syntax is not understood"
            case _:
                pass

    def _assign(self, name: "Node | None") -> None:
        self.assigned.add("" if name is None else re.split(r"[\[+]", self._text(name))[0])

    def _words(self, command: "Node") -> Iterator[Word]:
        """The tokens of a command in their order, with those that stand behind a redirection."""
        found = [child for child in command.named_children if child.type != "variable_assignment"]
        above = command.parent
        if above is not None and above.type == "redirected_statement":
            found += [child for child in above.named_children if child != command]
        places: list[Node] = []
        for node in found:
            if node.type == "command_name":
                places += node.named_children
            elif node.type.endswith("_redirect"):
                places += _behind(node)
            else:
                places.append(node)
        yield from (self._word(node) for node in sorted(places, key=lambda node: node.start_byte))

    def _check_heredoc(self, node: "Node") -> None:
        """The grammar does not read backquotes in a here-document, where a shell runs what they hold."""
        parts = {child.type: self._text(child) for child in node.named_children}
        if "`" in parts.get("heredoc_body", "") and not re.search(r"['\"\\]", parts.get("heredoc_start", "")):
            self.problem = "a here-document in it has backquotes"

    def _check_redirects(self, node: "Node") -> None:
        body = node.child_by_field_name("body")
        redirects = [child for child in node.named_children if child != body and child.type.endswith("_redirect")]
        if body is not None and body.type != "command" and any(_behind(each) for each in redirects):
            self.problem = "words stand behind a redirection whose command is unclear"

    def _word(self, node: "Node") -> Word:
        """A word as the program gets it, as far as that is known."""
        match node.type:
            case "word" | "number" | "variable_name" | "test_operator":
                return _unquoted(self._text(node))
            case "raw_string":
                return self._text(node)[1:-1]
            case "string":
                return self._double_quoted(node)
            case "concatenation":
                return self._joined(node)
            case "arithmetic_expansion" | "process_substitution":
                return Unknown(many=False, is_option=node.type == "arithmetic_expansion")
            case "ansi_c_string" | "translated_string":
                return Unknown(many=False)
            case _:
                return Unknown(many=True)

    def _double_quoted(self, node: "Node") -> Word:
        if any(child.type != "string_content" for child in node.named_children):
            return Unknown(many="@" in self._text(node))
        text = self._text(node)[1:-1]
        return (
            Unknown(many=False)
            if re.search(r"(?<!\\)(?:\\\\)*[$`]", text)
            else re.sub(r"\\([\\\"$`])|\\\n", r"\1", text)
        )

    def _joined(self, node: "Node") -> Word:
        parts = [self._word(child) for child in node.children]
        plain = "".join(self._text(child) if child.type in ("word", "number") else "x" for child in node.children)
        many = any(isinstance(part, Unknown) and part.many for part in parts) or bool(_BRACES.search(plain))
        if not many and all(isinstance(part, str) for part in parts):
            whole = "".join(part for part in parts if isinstance(part, str))
            return Unknown(many=True) if _GLOBS.search(plain) else whole
        # An expansion that is not quoted may bring in further words; a glob brings in names that begin as it does.
        is_split = any(child.type not in ("word", "number", "raw_string", "string") for child in node.children)
        starts = parts[0] if isinstance(parts[0], str) else ""
        return Unknown(many, is_option=is_split or not starts or starts[0] in "-{" or bool(_BRACES.match(plain)))

    def _text(self, node: "Node") -> str:
        self._looked_at += node.end_byte - node.start_byte
        return self._source[node.start_byte : node.end_byte].decode("utf-8", "replace")


def _behind(redirect: "Node") -> list["Node"]:
    """Tokens inside a redirection's node that belong to the command: all but its first destination."""
    if redirect.type == "herestring_redirect":
        return redirect.named_children[1:]
    if redirect.type == "heredoc_redirect":
        return redirect.children_by_field_name("argument")
    return redirect.children_by_field_name("destination")[1:]


def _unquoted(text: str) -> Word:
    """A bare word without its backslashes; unknown where the shell would expand it."""
    bare = re.sub(r"\\.", "x", text, flags=re.DOTALL)
    if _GLOBS.search(bare) or _BRACES.search(bare) or "$" in bare or "`" in bare:
        return Unknown(many=True, is_option=bare[:1] in ("-", "*", "?", "[", "{", "$", "`", "@", "!", "+"))
    if bare.startswith("~"):
        return Unknown(many=False, is_option=False)
    return re.sub(r"\\(.)", r"\1", re.sub(r"\\\n", "", text), flags=re.DOTALL)

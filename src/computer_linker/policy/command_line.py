"""Parses a command into one argv, strictly: refuses whatever a shell would interpret."""

import re
import unicodedata

from computer_linker.errors import InvalidRequest

MAX_TEXT = 32_768
MAX_ARGUMENTS = 4096
MAX_BYTES = 128_000

_SHELL_ONLY = {
    ";": "a command separator",
    "&": "a background or chaining operator",
    "|": "a pipe",
    "<": "a redirection",
    ">": "a redirection",
    "(": "a sub-shell",
    ")": "a sub-shell",
    "$": "an expansion",
    "`": "a command substitution",
    "*": "a glob",
    "?": "a glob",
    "[": "a glob",
    "]": "a glob",
    "{": "a brace expansion",
    "}": "a brace expansion",
    "!": "a history expansion",
    "^": "an escape or history character",
}
ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_HINT = 'Send an argv array such as ["git", "log"] to pass characters literally, or one plain command at a time.'


class ShellNeeded(InvalidRequest):
    """The text is only meaningful to a shell."""


def to_argv(command: str | list[str]) -> list[str]:
    """Parse a command into its argv. Raises ShellNeeded for text a shell would interpret, InvalidRequest for no command."""
    argv = split(command) if isinstance(command, str) else list(command)
    if not argv or not argv[0]:
        raise InvalidRequest("The command is empty.")
    check_argv(argv)
    return argv


def check_argv(argv: list[str]) -> None:
    """Refuse what cannot be an argv, or hides what it is."""
    if len(argv) > MAX_ARGUMENTS:
        raise InvalidRequest(f"A command has at most {MAX_ARGUMENTS} arguments.")
    total = 0
    for part in argv:
        if "\0" in part:
            raise InvalidRequest("A command cannot contain a NUL character.")
        try:
            total += len(part.encode("utf-8")) + 1
        except UnicodeEncodeError:
            raise InvalidRequest("A command must be valid Unicode text.") from None
    if total > MAX_BYTES:
        raise InvalidRequest(f"A command has at most {MAX_BYTES} bytes; pass more through stdin or a file.")
    if not argv[0].isprintable():
        raise InvalidRequest("The program's name holds a character that cannot be seen.")


def split(text: str) -> list[str]:
    """The words of a plain command line, with quotes and backslashes read as a POSIX shell reads them."""
    if len(text) > MAX_TEXT:
        raise InvalidRequest(f"A command line has at most {MAX_TEXT} characters; longer is refused, not cut.")
    for char in text:
        if char != "\t" and not char.isprintable():
            raise ShellNeeded(
                f"The command line holds a {_character_name(char)}, which a shell would interpret. {_HINT}"
            )
        if char != " " and unicodedata.category(char) == "Zs":
            raise ShellNeeded(f"The command line holds an unusual space ({_character_name(char)}). {_HINT}")
    words = _Reader(text).words()
    if words and not words[0].isascii():
        raise InvalidRequest("The program's name must be plain ASCII in a command line.")
    if words and ASSIGNMENT.match(words[0]):
        raise ShellNeeded("A command line cannot set variables in front of the program; use `env` in the input.")
    return words


class _Reader:
    """Reads words one character at a time."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def words(self) -> list[str]:
        found: list[str] = []
        while True:
            while self.at < len(self.text) and self.text[self.at] in " \t":
                self.at += 1
            if self.at >= len(self.text):
                return found
            found.append(self._word())

    def _word(self) -> str:
        if self.text[self.at] == "#":
            raise ShellNeeded(f"The command line holds a comment. {_HINT}")
        parts: list[str] = []
        while self.at < len(self.text) and (char := self.text[self.at]) not in " \t":
            self.at += 1
            match char:
                case "'":
                    parts.append(self._single())
                case '"':
                    parts.append(self._double())
                case "\\":
                    parts.append(self._escaped())
                case "~" if not parts or parts[-1][-1:] in (":", "="):
                    raise ShellNeeded(f"The command line holds `~`, a home folder. {_HINT}")
                case _ if char in _SHELL_ONLY:
                    raise ShellNeeded(f"The command line holds `{char}`, {_SHELL_ONLY[char]}. {_HINT}")
                case _:
                    parts.append(char)
        return "".join(parts)

    def _single(self) -> str:
        end = self.text.find("'", self.at)
        if end < 0:
            raise InvalidRequest("A quote in the command line is not closed.")
        inner, self.at = self.text[self.at : end], end + 1
        return inner

    def _double(self) -> str:
        parts: list[str] = []
        while self.at < len(self.text):
            char = self.text[self.at]
            self.at += 1
            if char == '"':
                return "".join(parts)
            if char in "$`":
                raise ShellNeeded(f"The command line holds `{char}`, {_SHELL_ONLY[char]}. {_HINT}")
            if char == "\\" and self.text[self.at : self.at + 1] in ('"', "\\", "$", "`"):
                char = self.text[self.at]
                self.at += 1
            parts.append(char)
        raise InvalidRequest("A quote in the command line is not closed.")

    def _escaped(self) -> str:
        following = self.text[self.at : self.at + 1]
        if not following or following.isalnum():
            raise ShellNeeded(f"The command line holds a lone backslash. {_HINT}")
        self.at += 1
        return following


def _character_name(char: str) -> str:
    return {"\n": "newline", "\r": "carriage return"}.get(char, f"character U+{ord(char):04X}")

"""Programs and builtins of a shell that start the command in their arguments, and how to find it there."""

import re
from collections.abc import Iterator

from computer_linker.errors import PermissionDenied
from computer_linker.policy.command_line import ASSIGNMENT
from computer_linker.policy.shell_line import Reading, Unknown, Word, Words, read_line

SHELLS = frozenset("sh bash dash zsh ksh ash".split())
BUILTINS = frozenset(
    """
    : true false cd pwd echo printf test [ [[ export unset set shift read local return exit wait umask ulimit type declare
    typeset readonly break continue let pushd popd dirs times jobs getopts
    """.split()
)
"""What a shell does itself, without a program, and without choosing what runs."""
UNREADABLE = frozenset(
    ". source alias unalias hash enable bind complete compgen coproc trap fc history shopt mapfile readarray caller fg bg".split()
)
"""Builtins that run text from elsewhere, or change what a later name means."""
_SETTERS = frozenset("read getopts printf export declare typeset readonly local unset let wait".split())
_NAMING = frozenset("declare typeset local".split())
"""With `-n` they make a variable another name of one that a word does not show."""
_ANYWHERE = frozenset(
    """
    env nohup nice ionice chrt taskset setsid stdbuf timeout time unshare nsenter chroot runuser su sudo doas pkexec setpriv
    xargs parallel find watch strace ltrace script expect busybox toybox command exec builtin eval coproc trap flock
    """.split()
)
"""They may start a command that stands anywhere in their arguments."""
_OPTIONS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "command": (frozenset({"-p"}), frozenset()),
    "exec": (frozenset({"-c", "-l", "-cl"}), frozenset({"-a"})),
    "builtin": (frozenset(), frozenset()),
    "time": (frozenset({"-p"}), frozenset()),
    "nohup": (frozenset(), frozenset()),
    "setsid": (frozenset({"-f", "-c", "-w"}), frozenset()),
    "nice": (frozenset(), frozenset({"-n"})),
    "timeout": (frozenset({"--foreground", "--preserve-status", "-v"}), frozenset({"-s", "-k"})),
    "stdbuf": (frozenset(), frozenset({"-i", "-o", "-e"})),
    "env": (frozenset({"-i", "-"}), frozenset({"-u"})),
    "xargs": (
        frozenset({"-0", "-r", "-t", "-x", "-0r", "-r0", "--null", "--no-run-if-empty"}),
        frozenset({"-n", "-L", "-P", "-s", "-d", "-I", "-E", "-a"}),
    ),
}  # fmt: skip
"""Starters whose command can be found: their options without and with a value."""
_LONG = "signal|kill-after|adjustment|input|output|error|unset|max-args|max-procs|max-lines|max-chars|delimiter|arg-file|replace"
_JOINED = re.compile(rf"-(?:\d+|n\d+|k\d+\S*|s[A-Z0-9]+|[ioe][L\d]+[kKMG]?|P\d+|L\d+|I\S+|d\S+|-(?:{_LONG})=\S*)")
_REPLACES = re.compile(r"-I|-i|--replace=")
_MAX_DEPTH = 8
MAX_WORDS = 256


def name_of(word: Word) -> str:
    """The program's name without its folder; empty when it cannot be read."""
    return word.rpartition("/")[2] if isinstance(word, str) else ""


def is_starter(words: Words) -> bool:
    """True for a starter whose command is judged in its place."""
    return name_of(words[0]) in _OPTIONS or (bool(words) and is_shell_text(words)) or words[0] == "eval"


def started_by(words: Words) -> tuple[Words, ...] | None:
    """The commands that a starter starts; empty when it starts none, None when that cannot be read."""
    name = name_of(words[0])
    if words[0] == "eval" or is_shell_text(words):
        reading = text_of(words, plainly=True)
        return None if reading is None or reading.problem else reading.commands
    plain, valued = _OPTIONS[name]
    rest = list(words[1:])
    replaced = ""
    while rest and isinstance(rest[0], str) and rest[0].startswith("-") and rest[0] != "--":
        option = rest.pop(0)
        if name == "command" and option in ("-v", "-V"):
            return ()
        if option in valued:
            value = rest.pop(0) if rest else None
            if not isinstance(value, str):
                return None
            replaced = value if option == "-I" else replaced
        elif name == "xargs" and (found := _REPLACES.match(str(option))):
            replaced = str(option)[found.end() :] or "{}"
        elif option not in plain and not (isinstance(option, str) and _JOINED.fullmatch(option)):
            return None
    rest = rest[1:] if rest and rest[0] == "--" else rest
    if name == "timeout" and (not rest or not isinstance(rest.pop(0), str)):
        return None
    while name == "env" and rest and isinstance(rest[0], str) and ASSIGNMENT.match(rest[0]):
        del rest[:1]
    if not rest:
        return ()
    if replaced:
        # What it reads stands for this text wherever it occurs; the program's name is treated like the rest.
        rest = [Unknown(many=False) if isinstance(word, str) and replaced in word else word for word in rest]
    return ((*rest, Unknown(many=True)) if name == "xargs" else tuple(rest),)


def is_shell_text(words: Words) -> bool:
    """True for a shell that gets a line as an argument, such as `bash -c`."""
    return name_of(words[0]) in SHELLS and any(_takes_text(word) for word in words[1:])


def is_shell_of_input(words: Words) -> bool:
    """True for a shell that reads its commands from its input."""
    has_file = any(isinstance(word, Unknown) or not word.startswith(("-", "+")) for word in words[1:])
    return name_of(words[0]) in SHELLS and not has_file


def text_of(words: Words, *, plainly: bool = False) -> Reading | None:
    """The line that `eval` or a shell gets; None when it cannot be read. `plainly`: nor where options may change its meaning."""
    if words[0] == "eval":
        parts = words[1:]
    else:
        at = next(place for place, word in enumerate(words) if place and _takes_text(word))
        is_plain = all(isinstance(word, str) and re.fullmatch(r"-[euxc]+", word) for word in words[1 : at + 1])
        parts = words[at + 1 : at + 2] if is_plain or not plainly else ()
    if not parts or any(isinstance(part, Unknown) for part in parts):
        return None
    return read_line(" ".join(part for part in parts if isinstance(part, str)))


def _takes_text(word: Word) -> bool:
    return isinstance(word, str) and re.fullmatch(r"-[A-Za-z]*c[A-Za-z]*", word) is not None


def every_start(words: Words, depth: int = 0) -> Iterator[Words]:
    """The command and each one that may start from its arguments, wherever it stands there; for what is denied."""
    yield words
    if depth > _MAX_DEPTH or not words:
        return
    if name_of(words[0]) in _ANYWHERE:
        if len(words) > MAX_WORDS:
            # Each of them may begin a command, which is judged with all words behind it.
            raise PermissionDenied(
                f"{name_of(words[0])} could start a command at each of its {len(words) - 1} arguments, and this scope lists "
                f"commands that it allows or denies. With at most {MAX_WORDS - 1} arguments it can be judged.",
                rule="deniedCommands",
            )
        yield from (words[at:] for at in range(1, len(words)))
    for at, word in enumerate(words):
        inner = words[at:]
        if (
            isinstance(word, str)
            and (word == "eval" or name_of(word) in SHELLS)
            and (at == 0 or name_of(words[0]) in _ANYWHERE)
        ):
            reading = text_of(inner) if word == "eval" or is_shell_text(inner) else None
            for command in () if reading is None else reading.commands:
                yield from every_start(command, depth + 1)


def set_by(words: Words) -> Iterator[str]:
    """Variables that a command sets, or that a starter sets for its command; `*` for those that cannot be read."""
    name = name_of(words[0])
    if name == "set" and _takes_assignments(words[1:]):
        yield "*"
    if name not in _SETTERS and name != "env":
        return
    for word in words[1:]:
        if isinstance(word, str) and word.startswith("-") and name != "env":
            if name in _NAMING and "n" in word:
                yield "*"
            # An option may have its variable in the same word: `printf -vNAME`.
            yield from (word[at:] for at in range(2, min(len(word), 40)))
        if isinstance(word, Unknown):
            yield "*" if word.is_option and name not in ("printf", "let") else ""
            continue
        if name == "env" and not ASSIGNMENT.match(word):
            if not word.startswith("-"):
                return
            continue
        found = ASSIGNMENT.match(word)
        yield found[0].rstrip("+=") if found is not None else word


def _takes_assignments(words: Words) -> bool:
    """True for a `set` after which a shell takes assignments anywhere in a command (`-k`), or that cannot be read."""
    for word in words:
        if isinstance(word, Unknown):
            return word.is_option
        if word in ("-", "--"):
            return False
        if word == "keyword" or (word.startswith("-") and "k" in word):
            return True
    return False

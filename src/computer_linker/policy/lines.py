"""Judges a shell line by the scope's rules: every program that can be read from it."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from computer_linker.errors import PermissionDenied
from computer_linker.model.principal import Principal
from computer_linker.model.scope import Scope
from computer_linker.policy.command_line import ASSIGNMENT
from computer_linker.policy.commands import Locate, Program, is_allowed, judge_denied, judge_program, not_allowed
from computer_linker.policy.shell_line import Reading, Unknown, Words, read_line
from computer_linker.policy.starters import (
    BUILTINS,
    UNREADABLE,
    every_start,
    is_shell_of_input,
    is_starter,
    name_of,
    set_by,
    started_by,
)

Resolve = Callable[[str, str], Program | None]
"""The file a program's name means in a folder of the scope (relative to where the line starts); None when there is none."""
_MAX_DEPTH = 8


@dataclass(frozen=True, slots=True)
class LineRules:
    """What a line is judged with."""

    scope: Scope
    principal: Principal
    locate: Locate
    resolve: Resolve
    takes_over: re.Pattern[str]
    """Names of variables that choose which programs run."""


def judge_line(rules: LineRules, text: str) -> list[Program]:
    """Raise PermissionDenied unless the scope's rules allow every program of the line; returns those that were found.

    A scope with neither list lets any line run: the boundary around it holds.
    """
    policy = rules.scope.policy
    reading = read_line(text)
    has_lists = policy.allowed_commands is not None or bool(policy.denied_commands)
    if has_lists:
        _judge_whole(rules, reading)
    folders = _folders(reading)
    found: list[Program] = []
    for words in reading.commands:
        found += _judge_words(rules, words, reading, folders, has_lists=has_lists)
    return found


def _judge_whole(rules: LineRules, reading: Reading) -> None:
    """Refuse what the lists cannot speak for: text that cannot be read, and variables that choose what runs."""
    if reading.problem:
        raise _unreadable(reading.problem)
    names = {
        *reading.assigned,
        *(name for words in reading.commands for each in every_start(words) for name in _set(each)),
    }
    chosen = sorted(name for name in names if name == "*" or rules.takes_over.fullmatch(name))
    if chosen:
        what = "a variable whose name cannot be read" if chosen == ["*"] else f"the variable {chosen[-1]}"
        raise _unreadable(f"it sets {what}, which can change which programs run")


def _set(words: Words) -> list[str]:
    first = words[0] if words else ""
    return list(set_by(words)) if isinstance(first, str) and first and not ASSIGNMENT.match(first) else []


def _judge_words(
    rules: LineRules,
    words: Words,
    reading: Reading,
    folders: tuple[str, ...] | None,
    *,
    has_lists: bool,
    depth: int = 0,
) -> list[Program]:
    found = _programs(rules, words, folders)
    for each in found:
        judge_program(each, rules.principal)
    if not has_lists:
        return found
    policy = rules.scope.policy
    for program in (*found, None):
        judge_denied(policy, words, program, rules.locate)
    name = name_of(words[0])
    if isinstance(words[0], Unknown) or words[0] in UNREADABLE or depth > _MAX_DEPTH:
        raise _unreadable(f"{name or 'a program'} in it depends on what only the running shell has")
    if not name.isascii():
        raise _unreadable("the name of a program in it is not plain ASCII")
    if folders is None and "/" in str(words[0]) and not str(words[0]).startswith("/"):
        raise _unreadable(f"it changes its folder in a way that leaves unclear which file {name} is")
    if is_shell_of_input(words) or not _starts_known(words):
        raise _unreadable(f"what {name} starts depends on what only the running shell has")
    if policy.allowed_commands is not None:
        found += _judge_allowed(rules, words, reading, folders, found, depth)
    return found


def _starts_known(words: Words) -> bool:
    """False for a starter whose command cannot be read."""
    inner = started_by(words) if is_starter(words) else ()
    return inner is not None and all(isinstance(each[0], str) for each in inner)


def _judge_allowed(
    rules: LineRules, words: Words, reading: Reading, folders: tuple[str, ...] | None, found: list[Program], depth: int
) -> list[Program]:
    """Raise unless a list allows the command, a shell does it itself, or it starts commands that are allowed."""
    policy = rules.scope.policy
    if words[0] in BUILTINS or (words[0] in reading.functions and not found):
        return []
    if found and all(is_allowed(policy, words, each, rules.locate, boundary_holds=True) for each in found):
        return []
    inner = started_by(words) if is_starter(words) else None
    if inner is None:
        raise not_allowed(policy, words, rules.scope.id, boundary_holds=True)
    return [
        program
        for each in inner
        for program in _judge_words(rules, each, reading, folders, has_lists=True, depth=depth + 1)
    ]


def _programs(rules: LineRules, words: Words, folders: tuple[str, ...] | None) -> list[Program]:
    """The files that a command's name may mean, in each folder that the line may be in."""
    name = words[0]
    if isinstance(name, Unknown) or not name:
        return []
    wanted = ("",) if "/" not in name or name.startswith("/") else folders or ("",)
    return [program for folder in wanted if (program := rules.resolve(name, folder)) is not None]


def _folders(reading: Reading) -> tuple[str, ...] | None:
    """Folders that the line may run its commands in, relative to its start; None when that cannot be read."""
    moves = [words for words in reading.commands if words[0] in ("cd", "pushd", "popd")]
    if not moves:
        return ("",)
    target = moves[0][1] if len(moves[0]) == 2 else None
    if len(moves) > 1 or moves[0][0] != "cd" or not isinstance(target, str) or target.startswith("-"):
        return None
    return ("", target)


def _unreadable(why: str) -> PermissionDenied:
    return PermissionDenied(
        f"This scope lists the commands that it allows or denies, and this line cannot be read for them: {why}. "
        "Write the programs plainly, one command at a time where needed. (The lists are no boundary; the sandbox is.)",
        rule="allowShell",
    )

"""@owner_operation: an operation for the computer's owner alone, and its form on the command line.

The command line is derived: the operation's name gives the command's words, the fields of its `input` the arguments and options,
its docstring the help, and its result what is shown. What cannot be derived is declared beside the field or in the decorator.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from computer_linker.model.base import Model
from computer_linker.model.effect import Effect
from computer_linker.registry.context import Context
from computer_linker.registry.operation import Command, Example, Operation, operation

__all__ = [
    "Context", "Effect", "Example", "LocalPath", "Model", "Named", "Note", "Positional", "ScopeArgument", "ScopeId", "Secret",
    "Shown", "Table", "Where", "owner_operation",
]  # fmt: skip
"""Everything that the file of an owner's operation imports from here."""

Where = Literal["anywhere", "service", "running", "terminal"]


@dataclass(frozen=True, slots=True)
class Positional:
    """The field is an argument by position, not an option."""

    metavar: str | None = None


@dataclass(frozen=True, slots=True)
class Named:
    """The option has these names instead of the field's: `Named("--all", "-a")`, or `Named("--write/--read-only")`.

    `metavar` is what the help calls its value.
    """

    names: tuple[str, ...]
    metavar: str | None

    def __init__(self, *names: str, metavar: str | None = None) -> None:
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "metavar", metavar)


@dataclass(frozen=True, slots=True)
class LocalPath:
    """The text is a path, made absolute where the command is typed: the service has another working folder."""


@dataclass(frozen=True, slots=True)
class ScopeId:
    """The text is the id of a scope; a shell completes it."""


ScopeArgument = Annotated[str, Field(description="The scope's id."), Positional(), ScopeId()]


@dataclass(frozen=True, slots=True)
class Secret:
    """The text is read from a file or from standard input, so that no process list and no shell history has it."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows that a terminal aligns."""

    rows: Sequence[Sequence[str]]
    headers: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Note:
    """A line about the answer, on stderr; not part of it."""

    text: str


Shown = str | Table | Note
"""A line of the answer, a table, or a note."""


def owner_operation(
    name: str,
    *,
    effect: Effect,
    examples: Iterable[Example],
    did: str = "",
    where: Where = "anywhere",
    text: Callable[[Any], Iterable[Shown]] | None = None,
    exit_code: Callable[[Any], int] | None = None,
    idle: Model | None = None,
    is_derived: bool = True,
    words: Iterable[str] = (),
    bare: Operation | None = None,
    needs_setup: bool = False,
    deadline_s: float | None = 60,
    cautions: Callable[[Any, Path], list[str]] | None = None,
) -> Callable[[Callable[..., Awaitable[Any]]], Operation]:
    """Turn an async function `(ctx, input?) -> Model` into an owner's operation.

    `where`: `terminal` always runs in the command's own process, for what concerns the person's own files and programs. The
    others run in the service; with none running, `anywhere` runs in the command's own process, `service` starts a service, and
    `running` refuses, or answers `idle` where that is given. `is_derived=False` is for what a hand-written command asks by
    `cli.owner.ask`.
    `text` shows the typed result to a person; without it each field is a row. `exit_code` is for commands that answer with it.
    `did` is the phrase of an act in the history; questions are not recorded.
    `words` are the commands it is known by, where they are not those of its name. `bare` is the question that its command answers
    when it is typed without arguments. `needs_setup`: without a state folder it is refused, and none is made. `cautions` gives
    reasons to think again, from the input and the state folder: they are shown first, and a person at a terminal is asked.
    """
    define = operation(name, did=did, effect=effect, examples=examples, on="service", deadline_s=deadline_s)

    def build(run: Callable[..., Awaitable[Any]]) -> Operation:
        return replace(
            define(run),
            command=Command(where, text, exit_code, idle, is_derived, tuple(words), bare, needs_setup, cautions),
        )

    return build

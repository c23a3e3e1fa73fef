"""@operation: the one definition of an operation, a value that the catalogue collects."""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import anyio
from pydantic import ValidationError

from computer_linker.approvals.request import Preview
from computer_linker.audit.phrases import fields_in
from computer_linker.changes.links import links_on
from computer_linker.changes.preview import preview as preview_changes
from computer_linker.computer.base import Computer
from computer_linker.computer.facets.files import Change
from computer_linker.computer.manifest import FacetName
from computer_linker.errors import ExecutionFailed, InvalidRequest, LinkError, TimedOut
from computer_linker.model.base import Model
from computer_linker.model.capability import Capability
from computer_linker.model.effect import Effect
from computer_linker.model.scope import ScopeKind, ScopePolicy
from computer_linker.policy.visible_text import escaped
from computer_linker.registry.context import Context, Planned, Step
from computer_linker.registry.text import PLAIN, Text
from computer_linker.registry.validation import explain_validation, explained

_PREVIEW_S = 6.0
CWD = "cwd"
"""The option of every operation with paths: the folder that relative ones start from."""
Shows = Callable[..., Awaitable[Preview]] | Literal["changes", "whole changes"]
Runs = Callable[[Any], str | Sequence[str]]
Resolves = Callable[..., Awaitable[Sequence[str]]]
Makes = Callable[..., Sequence[Step]]
PathBoundary = Literal["path-enforced", "sandboxed", "scoped-metadata", "desktop", "mixed", "owner"]
_BOUNDARIES: dict[ScopeKind, PathBoundary] = {
    "folder": "path-enforced",
    "computer": "desktop",
    "any": "scoped-metadata",
    "service": "owner",
}


@dataclass(frozen=True, slots=True)
class Example:
    """One worked request: shown in the reference, run by the tests."""

    title: str
    request: dict[str, Any]
    runs: bool = True
    """False where the example needs something a test machine lacks (a desktop, a program)."""


@dataclass(frozen=True, slots=True)
class Command:
    """An owner's operation as a command: where it runs, how its result is shown, and its exit code. See registry/owner.py."""

    where: Literal["anywhere", "service", "running", "terminal"]
    text: Callable[[Any], Iterable[Any]] | None = None
    exit_code: Callable[[Any], int] | None = None
    idle: Model | None = None
    is_derived: bool = True
    """False where a hand-written command, or none at all, uses it."""
    words: tuple[str, ...] = ()
    bare: "Operation | None" = None
    needs_setup: bool = False
    cautions: Callable[[Any, Path], list[str]] | None = None


@dataclass(frozen=True)
class Operation:
    """A decorated function and its declaration."""

    name: str
    run: Callable[..., Awaitable[Any]]
    needs: frozenset[Capability]
    needs_any: frozenset[Capability]
    effect: Effect
    on: ScopeKind
    boundary: PathBoundary
    deadline_s: float | None
    destructive: bool
    awaits_intent: bool
    """The body prepares while the intent is made durable, and awaits `ctx.durable_intent()` before its effect."""
    examples: tuple[Example, ...]
    did: str = ""
    """Its phrase in the history, in the past tense: `read`, `made the folder`. What it was about follows, unless it
    stands in the text itself: `{field}` is a fact of the event, and a part in brackets is left out without its facts."""
    aliases: tuple[str, ...] = ()
    unavailable: Callable[[], str | None] | None = field(default=None)
    """Why this operation is unavailable on this machine, with the remedy; None when it is available."""
    facets: tuple[FacetName, ...] = ()
    """The facets it requires; where one is missing, the operation is absent."""

    runs: Runs | None = None
    """Returns the command line of its input, for the history; None for an operation that runs no program by name."""

    resolves: Resolves | None = None
    """Returns the command line that will really run, where the input only names it: a function with the parameters of `run`."""

    command: Command | None = None
    """For the owner's operations alone: its form on the command line."""

    asked_by: Callable[[ScopePolicy], bool] | None = None
    """Whether a scope asks a person before this operation, beside its `confirm`."""

    needs_policy: str | None = None
    """The field of a scope's policy without which it is refused there; such a scope does not list it."""

    makes: Makes | None = None
    """Returns the calls that it makes, from its input: a person who would be asked about one is asked once about all."""

    text: Text = PLAIN
    """How a model reads its result."""

    shows: Shows | None = None
    """The preview for an approver, beside the request itself: a function with the parameters of `run`, or
    `"changes"` for the file changes that `run` hands to `ctx.change`, which is then its only effect; `"whole changes"` where
    the request does not have the new contents, so that no part of a difference is left out."""

    async def preview(self, ctx: Context, arguments: dict[str, Any]) -> Preview | None:
        """Return the preview of these arguments; None where the request itself is enough."""
        if self.shows is None:
            return None
        try:
            with anyio.fail_after(_PREVIEW_S):
                if self.shows == "changes" or self.shows == "whole changes":
                    planned = ctx.planned if ctx.planned is not None else await self._plan(ctx, arguments)
                    # Of a paired computer's call the request that is shown below has digests alone.
                    is_whole = ctx.payload is not None or self.shows == "whole changes"
                    about = await preview_changes(ctx.computer.files, planned, is_whole=is_whole)
                else:
                    about = await self.shows(ctx, **arguments)
                links = await links_on(ctx.computer.files, map(ctx.path_from_root, about.paths))
                lines = (*about.lines, *(f"{link} is a link: what it leads to is changed" for link in links))
                return replace(about, lines=tuple(escaped(line) for line in lines), links=links)
        except LinkError as error:
            return Preview((escaped(f"It cannot be shown now, and so not be allowed: {error.message}"),), fault=error)
        except TimeoutError:
            late = TimedOut("Looking at what it is for took too long.", seconds=_PREVIEW_S)
            return Preview(("It cannot be shown now, and so not be allowed: looking took too long.",), fault=late)

    async def _plan(self, ctx: Context, arguments: dict[str, Any]) -> Sequence[Change]:
        """Run the body only as far as its file changes, and return them: it has no other effect."""
        try:
            await self.run(
                replace(
                    ctx, is_preview=True, dispatch=_not_in_a_preview, refuse=_not_in_a_preview,
                    durable_intent=_not_in_a_preview, warnings=[], notes={}, attachments=[],
                ),
                **arguments,
            )  # fmt: skip
        except Planned as reached:
            return reached.changes
        return ()

    @property
    def passes_gate_itself(self) -> bool:
        """True when the body starts before the intent is durable, and awaits that before its effect."""
        return self.awaits_intent or self.shows_changes

    @property
    def shows_changes(self) -> bool:
        """True where its only effect are the file changes that an approver is shown."""
        return isinstance(self.shows, str)

    @property
    def device_queue(self) -> str | None:
        """The device queue it waits in: acts on the desktop take turns."""
        return "desktop" if self.effect is Effect.ACT and self.on == "computer" else None

    def why_absent(self, computer: Computer) -> str | None:
        """Why a computer cannot do this, with the remedy; None when it can."""
        if self.unavailable is not None and (reason := self.unavailable()) is not None:
            return reason
        states = computer.capabilities().facets if self.facets else {}
        for facet in self.facets:
            if states[facet].state != "present":
                return f"{states[facet].reason} {states[facet].remedy}".strip()
        return None

    @cached_property
    def noun(self) -> str:
        """The part of its name before the dot."""
        return self.name.partition(".")[0]

    @property
    def summary(self) -> str:
        """The docstring, which reaches users."""
        return inspect.cleandoc(self.run.__doc__ or "")

    @cached_property
    def named(self) -> tuple[str, ...]:
        """The facts that its phrase in the history names."""
        return tuple(fields_in(self.did))

    @cached_property
    def capability(self) -> str | None:
        """The capability as the history records it."""
        return ",".join(sorted(self.needs | self.needs_any)) or None

    @cached_property
    def hints(self) -> dict[str, Any]:
        return get_type_hints(self.run, include_extras=True)

    @cached_property
    def parameters(self) -> dict[str, inspect.Parameter]:
        names = dict(inspect.signature(self.run).parameters)
        names.pop("ctx", None)
        return names

    @cached_property
    def _parsers(self) -> list[tuple[str, Callable[[Any], Any], Any]]:
        return [
            (name, _parser(name, self.hints[name]), parameter.default) for name, parameter in self.parameters.items()
        ]

    async def command_line(self, ctx: Context, arguments: dict[str, Any]) -> str | Sequence[str] | None:
        """The command line it is about to run, for the history; None where it runs no program by name."""
        if self.resolves is not None:
            with suppress(LinkError):
                return await self.resolves(ctx, **arguments)
        return None if self.runs is None else self.runs(arguments["input"])

    @property
    def takes_cwd(self) -> bool:
        """True for an operation whose paths may start from a folder that its options name."""
        return self.on == "folder" and self.boundary in ("path-enforced", "sandboxed")

    def cwd_in(self, options: Any) -> str:
        """The folder that a request's relative paths start from; empty without one."""
        if not self.takes_cwd or type(options) is not dict or CWD not in options:
            return ""
        cwd = options[CWD]
        if type(cwd) is not str or not cwd:
            raise InvalidRequest("`options.cwd` names a folder of the scope.", field="options.cwd")
        return cwd

    def parse(self, target: Any, input: Any, options: Any) -> dict[str, Any]:
        """The typed arguments. Raises InvalidRequest for what does not fit, naming the field."""
        if self.cwd_in(options):
            options = {name: value for name, value in options.items() if name != CWD}
        given = {"target": target, "input": input, "options": options}
        arguments: dict[str, Any] = {}
        for name, parse, default in self._parsers:
            value = given.pop(name)
            if value is None or (value == {} and name != "target"):
                if default is not inspect.Parameter.empty:
                    arguments[name] = default
                    continue
                if name == "target":
                    raise InvalidRequest(f"{self.name} needs a target.")
                value = {}
            arguments[name] = parse(value)
        for name, value in given.items():
            if value is not None and value != {} and not (name == "target" and value == ""):
                raise InvalidRequest(f"{self.name} takes no {name}.")
        return arguments


def operation(
    name: str,
    *,
    needs: Iterable[Capability] = (),
    needs_any: Iterable[Capability] = (),
    effect: Effect,
    examples: Iterable[Example],
    did: str = "",
    on: ScopeKind = "folder",
    boundary: PathBoundary | None = None,
    deadline_s: float | None = 60,
    destructive: bool = False,
    awaits_intent: bool = False,
    aliases: Iterable[str] = (),
    unavailable: Callable[[], str | None] | None = None,
    facets: Iterable[FacetName] = (),
    shows: Shows | None = None,
    asked_by: Callable[[ScopePolicy], bool] | None = None,
    runs: Runs | None = None,
    text: Text = PLAIN,
    resolves: Resolves | None = None,
    makes: Makes | None = None,
    needs_policy: str | None = None,
) -> Callable[[Callable[..., Awaitable[Any]]], Operation]:
    """Turn an async function into an operation: `(ctx, target?, input?, options?) -> Model`.

    Most need a name, `did`, `needs`, `effect` and `examples`; one that changes files adds `shows="changes"` and calls
    `ctx.change`.

    `deadline_s=None` is for operations that keep their own time: they get the scope's `maxRuntimeSeconds`.
    """

    def build(run: Callable[..., Awaitable[Any]]) -> Operation:
        return Operation(
            name=name,
            run=run,
            needs=frozenset(needs),
            needs_any=frozenset(needs_any),
            effect=effect,
            on=on,
            boundary=boundary or _BOUNDARIES[on],
            deadline_s=deadline_s,
            destructive=destructive,
            awaits_intent=awaits_intent,
            examples=tuple(examples),
            did=did,
            aliases=tuple(aliases),
            unavailable=unavailable,
            facets=tuple(facets),
            shows=shows,
            asked_by=asked_by,
            runs=runs,
            text=text,
            resolves=resolves,
            makes=makes,
            needs_policy=needs_policy,
        )

    return build


async def _not_in_a_preview(*_: Any) -> Any:
    raise ExecutionFailed("An operation that shows its file changes has no other effect than `ctx.change`.")


def _parser(name: str, hint: Any) -> Callable[[Any], Any]:
    kind = without_none(hint)
    if kind is str:
        return lambda value: _text(name, value)
    if isinstance(kind, type) and issubclass(kind, Model):
        return lambda value: _model(name, kind, value)
    from pydantic import TypeAdapter

    adapter: TypeAdapter[Any] = TypeAdapter(kind)

    def parse(value: Any) -> Any:
        with explain_validation(name):
            return adapter.validate_python(value, strict=True, by_alias=True, by_name=False)

    return parse


def _text(name: str, value: Any) -> str:
    if type(value) is not str:
        raise InvalidRequest(f"`{name}` must be a string.", field=name)
    return value


def _model(name: str, kind: type[Model], value: Any) -> Model:
    if type(value) is not dict:
        raise InvalidRequest(f"`{name}` must be an object.", field=name)
    # Not a context manager: this is on every call's path.
    try:
        return kind.from_wire(value)
    except ValidationError as error:
        raise explained(error, name, kind) from None


def without_none(hint: Any) -> Any:
    """The type of a value that is given: `str` of `str | None`."""
    if get_origin(hint) in (Union, UnionType):
        kept = [part for part in get_args(hint) if part is not NoneType]
        if len(kept) == 1:
            return kept[0]
    return hint

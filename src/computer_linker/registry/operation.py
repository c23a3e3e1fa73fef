"""@operation: the one definition of an operation, a value that the catalogue collects."""

import inspect
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import anyio
from pydantic import ValidationError

from computer_linker.computer.base import Computer
from computer_linker.computer.manifest import FacetName
from computer_linker.errors import InvalidRequest, LinkError, TimedOut
from computer_linker.model.base import Model
from computer_linker.model.capability import Capability
from computer_linker.model.effect import Effect
from computer_linker.model.rights import ScopeKind
from computer_linker.policy.confirm import About
from computer_linker.policy.preview import escaped
from computer_linker.registry.validation import explain_validation, explained

_LOOK_S = 6.0
PathBoundary = Literal["path-enforced", "sandboxed", "scoped-metadata", "desktop", "mixed"]


@dataclass(frozen=True, slots=True)
class Example:
    """One worked request: shown in the reference, run by the tests."""

    title: str
    request: dict[str, Any]
    runs: bool = True
    """False where the example needs something a test machine lacks (a desktop, a program)."""


@dataclass(frozen=True)
class Operation:
    """A decorated function and all that is said of it."""

    name: str
    run: Callable[..., Awaitable[Any]]
    needs: frozenset[Capability]
    needs_any: frozenset[Capability]
    effect: Effect
    on: ScopeKind
    boundary: PathBoundary
    lane: str | None
    deadline_s: float | None
    destructive: bool
    instant: bool
    """Without options it never waits for anything, so it needs neither a task nor a deadline of its own."""
    awaits_intent: bool
    """The body prepares while the intent is made durable, and awaits `ctx.durable_intent()` before its effect."""
    examples: tuple[Example, ...]
    aliases: tuple[str, ...] = ()
    unavailable: Callable[[], str | None] | None = field(default=None)
    """Why this operation cannot be had on this machine, with the remedy; None when it can."""
    facets: tuple[FacetName, ...] = ()
    """The facets it cannot do without; where one is missing, the operation is absent."""

    shows: Callable[..., Awaitable[About]] | None = None
    """What a person should see before they say yes, beside the request itself; it takes what `run` takes."""

    async def look(self, ctx: Any, arguments: dict[str, Any]) -> About | None:
        """What a person is shown of these arguments; None where the request itself says it all."""
        if self.shows is None:
            return None
        try:
            with anyio.fail_after(_LOOK_S):
                about = await self.shows(ctx, **arguments)
                return replace(about, lines=tuple(escaped(line) for line in about.lines))
        except LinkError as error:
            return About((escaped(f"It cannot be shown now, and so not be allowed: {error.message}"),), fault=error)
        except TimeoutError:
            late = TimedOut("Looking at what it is for took too long.", seconds=_LOOK_S)
            return About(("It cannot be shown now, and so not be allowed: looking took too long.",), fault=late)

    def why_absent(self, computer: Computer) -> str | None:
        """Why a computer cannot do this, with the remedy; None when it can."""
        if self.unavailable is not None and (reason := self.unavailable()) is not None:
            return reason
        states = computer.capabilities().facets if self.facets else {}
        for facet in self.facets:
            if states[facet].state != "present":
                return f"{states[facet].reason} {states[facet].remedy}".strip()
        return None

    @property
    def summary(self) -> str:
        """The docstring, which reaches users."""
        return inspect.cleandoc(self.run.__doc__ or "")

    @cached_property
    def capability(self) -> str | None:
        """What the history says was needed."""
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

    def parse(self, target: Any, input: Any, options: Any) -> dict[str, Any]:
        """The typed arguments. Raises InvalidRequest for what does not fit, naming the field."""
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
    on: ScopeKind = "folder",
    boundary: PathBoundary = "path-enforced",
    lane: str | None = None,
    deadline_s: float | None = 60,
    destructive: bool = False,
    awaits_intent: bool = False,
    instant: bool = False,
    aliases: Iterable[str] = (),
    unavailable: Callable[[], str | None] | None = None,
    facets: Iterable[FacetName] = (),
    shows: Callable[..., Awaitable[About]] | None = None,
) -> Callable[[Callable[..., Awaitable[Any]]], Operation]:
    """Make an operation of an async function `(ctx, target?, input?, options?) -> Model`.

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
            boundary=boundary,
            lane=lane,
            deadline_s=deadline_s,
            destructive=destructive,
            awaits_intent=awaits_intent,
            instant=instant,
            examples=tuple(examples),
            aliases=tuple(aliases),
            unavailable=unavailable,
            facets=tuple(facets),
            shows=shows,
        )

    return build


def _parser(name: str, hint: Any) -> Callable[[Any], Any]:
    kind = _without_none(hint)
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
    # Not by a context manager: every call comes by here.
    try:
        return kind.from_wire(value)
    except ValidationError as error:
        raise explained(error, name, kind) from None


def _without_none(hint: Any) -> Any:
    if get_origin(hint) in (Union, UnionType):
        kept = [part for part in get_args(hint) if part is not NoneType]
        if len(kept) == 1:
            return kept[0]
    return hint

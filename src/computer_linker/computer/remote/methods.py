"""Every facet method that can be called remotely: its wire name, required capability, and codecs."""

import inspect
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Literal, Protocol, get_args, get_type_hints

from pydantic import TypeAdapter, ValidationError

from computer_linker.computer.facets import (
    accessibility,
    clipboard,
    facts,
    files,
    keyboard,
    notifications,
    pointer,
    screen,
    windows,
)
from computer_linker.computer.facets.processes import Ended, PtySize, SignalName, Usage
from computer_linker.computer.manifest import FacetName
from computer_linker.errors import InvalidRequest
from computer_linker.model.capability import Capability
from computer_linker.model.effect import Effect, Known

_LIFTED = 65_536
"""Longer binary values are sent beside the reply."""


@dataclass(frozen=True)
class Method:
    """One facet method on the wire."""

    name: str
    facet: FacetName
    attribute: str
    kind: type
    needs: frozenset[Capability] = frozenset()
    needs_any: frozenset[Capability] = frozenset()
    effect: Effect = Effect.OBSERVE
    known: Known | None = None
    """The effect word after an act that raised nothing."""
    is_repeatable: bool = False
    """An idempotent change, which needs no deduplication key."""
    is_stream: bool = False
    has_blobs: bool = False
    item: type | None = None
    """The item type of a stream, where the method's annotation lacks it."""
    asked_by: None = None

    @property
    def is_act(self) -> bool:
        """Whether it must not be resent unless that machine deduplicates it by its key."""
        return self.effect is not Effect.OBSERVE and not self.is_repeatable

    @property
    def on(self) -> Literal["folder", "computer"]:
        return "folder" if self.facet in ("files", "processes") else "computer"

    @cached_property
    def signature(self) -> inspect.Signature:
        found = inspect.signature(getattr(self.kind, self.attribute))
        return found.replace(parameters=list(found.parameters.values())[1:])

    @cached_property
    def _adapters(self) -> dict[str, TypeAdapter[Any]]:
        hints = get_type_hints(getattr(self.kind, self.attribute))
        if self.is_stream:
            hints["return"] = self.item or get_args(hints["return"])[0]
        return {name: TypeAdapter(hint) for name, hint in hints.items() if not _is_callback(hint)}

    def to_params(self, given: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
        """The arguments of a call as plain values."""
        bound = self.signature.bind(*given, **named)
        return {name: self._adapters[name].dump_python(value, by_alias=True) for name, value in bound.arguments.items()}

    def from_params(self, params: Any) -> dict[str, Any]:
        """The typed arguments of a call from the wire. Raises InvalidRequest for a mismatch."""
        known = self.signature.parameters
        if type(params) is not dict or not params.keys() <= known.keys():
            raise InvalidRequest(f"{self.name} takes {', '.join(known) or 'nothing'}.")
        for name, parameter in known.items():
            if parameter.default is inspect.Parameter.empty and name not in params:
                raise InvalidRequest(f"{self.name} needs `{name}`.", field=name)
        return {name: self._value(name, value) for name, value in params.items()}

    def to_answer(self, result: Any) -> tuple[Any, list[bytes]]:
        """The result as plain values, with its large binary data separate."""
        blobs: list[bytes] = []
        if self.has_blobs and isinstance(result, screen.Pixmap):
            # Without the adapter, which would copy eight megabytes of pixels.
            blobs.append(result.data)
            plain = {"width": result.width, "height": result.height, "stride": result.stride}
            return {**plain, "data": {"blob": 0}, "area": result.area.to_wire()}, blobs
        value = self._adapters["return"].dump_python(result, by_alias=True)
        return (_lifted(value, blobs), blobs) if self.has_blobs else (value, blobs)

    def from_answer(self, value: Any, blobs: list[bytes]) -> Any:
        """The typed result of a reply. Raises InvalidRequest for a mismatch."""
        return self._value("return", _lowered(value, blobs) if self.has_blobs else value)

    def _value(self, name: str, value: Any) -> Any:
        try:
            return self._adapters[name].validate_python(value)
        except ValidationError as error:
            raise InvalidRequest(f"{self.name}: `{name}` does not fit.", field=name) from error


def _is_callback(hint: Any) -> bool:
    return hint is files.Keeper or "Keeper" in str(hint) or "Callable" in str(hint)


def _lifted(value: Any, blobs: list[bytes]) -> Any:
    if type(value) is bytes and len(value) > _LIFTED:
        blobs.append(value)
        return {"blob": len(blobs) - 1}
    if type(value) is dict:
        return {name: _lifted(part, blobs) for name, part in value.items()}
    return value


def _lowered(value: Any, blobs: list[bytes]) -> Any:
    if type(value) is dict:
        if value.keys() == {"blob"} and type(value["blob"]) is int:
            if not 0 <= value["blob"] < len(blobs):
                raise InvalidRequest("The answer lacks some of its bytes.")
            return blobs[value["blob"]]
        return {name: _lowered(part, blobs) for name, part in value.items()}
    return value


_SEE = frozenset({Capability.SCREEN_CAPTURE})
_LOOK = frozenset({Capability.DESKTOP_OBSERVE, Capability.DESKTOP_CONTROL, Capability.SCREEN_CAPTURE})
_CONTROL = frozenset({Capability.DESKTOP_CONTROL})
_APPS = frozenset({Capability.APP_CONTROL})
_APP_LOOK = frozenset({Capability.DESKTOP_OBSERVE, Capability.APP_CONTROL})
_OBSERVE = frozenset({Capability.DESKTOP_OBSERVE, Capability.DESKTOP_CONTROL})
_PROCESSES = frozenset({Capability.PROCESS_OBSERVE})
_NOTICES = frozenset({Capability.NOTIFICATIONS_READ})
_LOCK = frozenset({Capability.SESSION_LOCK})
_CLIP_READ = frozenset({Capability.CLIPBOARD_READ})
_CLIP_WRITE = frozenset({Capability.CLIPBOARD_WRITE})
_READ = frozenset({Capability.FS_READ})
_WRITE = frozenset({Capability.FS_READ, Capability.FS_WRITE})
_START = frozenset({Capability.COMMAND_RUN, Capability.PROCESS_MANAGE})
_HELD = frozenset({Capability.PROCESS_MANAGE})


_Row = Callable[[str, FacetName, type], Callable[..., None]]


def _rows() -> list[Method]:
    made: list[Method] = []

    def row(name: str, facet: FacetName, kind: type) -> Callable[..., None]:
        def add(attribute: str, called: str = "", **more: Any) -> None:
            made.append(Method(f"{name}.{called or attribute}", facet, attribute, kind, **more))

        return add

    _screen_and_input(row)
    _applications(row)
    _folders(row)
    return made


def _screen_and_input(row: _Row) -> None:
    add = row("display", "screen", screen.Screen)
    add("displays", "list", needs_any=_LOOK)
    add("capture", needs=_SEE, has_blobs=True)
    add("capture_window", needs=_SEE, has_blobs=True)
    add("changes", "subscribe", needs=_SEE, is_stream=True)
    add = row("input", "pointer", pointer.Pointer)
    add("position", needs_any=_OBSERVE)
    for act in ("move", "click", "drag", "scroll"):
        add(act, needs=_CONTROL, effect=Effect.ACT, known="unverifiable")
    add = row("input", "keyboard", keyboard.Keyboard)
    add("can_type", needs_any=_OBSERVE)
    for act in ("press", "type_text"):
        add(act, needs=_CONTROL, effect=Effect.ACT, known="unverifiable")
    add = row("input", "facts", facts.Facts)
    add("input", "subscribe", needs_any=_OBSERVE, is_stream=True)
    add = row("session", "facts", facts.Facts)
    add("environment", needs_any=_LOOK | _APP_LOOK)
    add("processes", needs=_PROCESSES)
    add("lock_screen", needs_any=_CONTROL | _LOCK, effect=Effect.ACT, known="unverifiable")


def _applications(row: _Row) -> None:
    add = row("windows", "windows", windows.Windows)
    for look in ("list", "stack", "focused", "at"):
        add(look, needs_any=_LOOK)
    for act in ("focus", "place", "close"):
        add(act, needs=_CONTROL, effect=Effect.ACT, known="confirmed")
    add = row("apps", "apps", windows.Apps)
    add("list", needs_any=_APP_LOOK)
    for act in ("open", "close", "focus"):
        add(act, needs=_APPS, effect=Effect.ACT, known="confirmed")
    add = row("clip", "clipboard", clipboard.Clipboard)
    for look in ("types", "read", "snapshot"):
        add(look, needs=_CLIP_READ, has_blobs=True)
    add("taken", needs=_CLIP_WRITE)
    add("write", needs=_CLIP_WRITE, effect=Effect.ACT, known="unverifiable")
    add = row("notices", "notifications", notifications.Notifications)
    add("recent", needs_any=_OBSERVE | _NOTICES)
    add("subscribe", needs_any=_OBSERVE | _NOTICES, is_stream=True)
    add = row("controls", "accessibility", accessibility.Accessibility)
    for look in (
        "applications", "hidden", "tree", "element", "ancestors", "focused", "text", "text_length", "caret", "actions",
        "is_alive",
    ):  # fmt: skip
        add(look, needs_any=_OBSERVE)
    add("changes", "subscribe", needs_any=_OBSERVE, is_stream=True, item=accessibility.Change)
    for act in ("set_text", "set_value", "perform", "select_child", "focus", "scroll_to"):
        add(act, needs=_CONTROL, effect=Effect.ACT, known="unverifiable")


def _folders(row: _Row) -> None:
    add = row("files", "files", files.Files)
    for look in ("stat", "sha256", "read", "read_whole", "list_folder", "tree"):
        add(look, needs=_READ, has_blobs=look.startswith("read"))
    add("change", needs=_WRITE, effect=Effect.CHANGE)
    add("rehearse", needs=_WRITE)
    add = row("processes", "processes", ProcessesThere)
    add("spawn", needs=_START, effect=Effect.CHANGE, known="unverifiable")
    # What runs once the gate opens was checked, confirmed and audited with `spawn`.
    for look in ("go", "usage"):
        add(look, needs=_HELD)
    for look in ("output", "ending"):
        add(look, needs=_HELD, is_stream=True)
    add("signal", needs=_HELD, effect=Effect.CHANGE, known="unverifiable")
    for change in ("feed", "kill", "hang_up", "resize"):
        add(change, needs=_HELD, effect=Effect.CHANGE, known="unverifiable", is_repeatable=True)


@cache
def methods() -> dict[str, Method]:
    """Every method by its wire name, created on first use."""
    return {method.name: method for method in _rows()}


@cache
def methods_of(facet: FacetName) -> dict[str, Method]:
    """The methods of one facet by their Python names."""
    return {method.attribute: method for method in methods().values() if method.facet == facet}


# Wire models of remote processes: the launch, and every call about a process that runs there.

OutputName = Literal["stdout", "stderr"]
FED = 65_536
"""The maximum size of one `feed`."""
RESUME_S = 20.0
"""How long a caller tries to reconnect to a process after its link broke."""


@dataclass(frozen=True, slots=True)
class FarLaunch:
    """A program to start there: only what policy can check. Descriptors and kernel rules are the other machine's own."""

    argv: tuple[str, ...]
    env: dict[str, str]
    stdin: Literal["null", "pipe"] = "null"
    pty: PtySize | None = None


@dataclass(frozen=True, slots=True)
class Spawned:
    """A process that waits at its gate there, under a handle that only its caller can use."""

    process: str
    pid: int
    missing: str | None = None
    """Why there is no process: the program does not exist. Every other failure is an error."""


class ProcessesThere(Protocol):
    """The process calls that a machine serves to a peer."""

    async def spawn(self, launch: FarLaunch) -> Spawned:
        """Check, confine and start a program; it waits at its gate."""
        ...

    async def go(self, process: str) -> None:
        """Open the gate. The program was approved, and audited, by `spawn`."""
        ...

    async def feed(self, process: str, at: int, data: bytes, is_last: bool = False) -> int:
        """Write input at the offset `at`; returns how much is accepted, now or when it was sent before."""
        ...

    async def signal(self, process: str, name: SignalName) -> None: ...

    async def kill(self, process: str) -> None: ...

    async def hang_up(self, process: str, name: OutputName) -> None:
        """Stop reading an output: a program that writes on gets SIGPIPE, as when a pipe is closed."""
        ...

    async def resize(self, process: str, size: PtySize) -> None: ...

    async def usage(self, process: str) -> Usage | None: ...

    def output(self, process: str, name: OutputName, have: int) -> AsyncIterator[bytes]:
        """Its output from byte `have` on, with back-pressure."""
        ...

    def ending(self, process: str) -> AsyncIterator[Ended]:
        """One item, once it has ended."""
        ...

"""Accessibility: the controls of running applications, their properties, and actions on them."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

from computer_linker.model.geometry import Rect


class ElementId(NamedTuple):
    """Which element of which running application: valid only while that application runs."""

    app: str
    path: str


@dataclass(slots=True)
class Element:
    """One control as its application describes it. `bounds` is in desktop coordinates, None when not reported."""

    id: ElementId
    parent: ElementId | None
    role: str
    name: str
    states: tuple[str, ...] = ()
    interfaces: frozenset[str] = frozenset()
    """Its AT-SPI interfaces: Action, Component, EditableText, Selection, Table, Text, Value."""
    description: str = ""
    bounds: Rect | None = None
    value: str | None = None
    children: int = 0
    index: int = -1
    label: str = ""
    """The name of the element that labels it, for a field that has no name of its own."""

    def has(self, *states: str) -> bool:
        """True when the element is in all of these states."""
        return all(state in self.states for state in states)

    @property
    def is_password(self) -> bool:
        """True for a password field, whose text must never be read."""
        return self.role == "password-text"


@dataclass(slots=True)
class Application:
    """A running application that exposes an accessibility tree."""

    id: str
    name: str
    pid: int | None
    toolkit: str
    toolkit_version: str
    root: ElementId
    windows: list[Element] = field(default_factory=list)
    process: str = ""
    """The name of its program, where the system reports it."""

    @property
    def is_gtk3(self) -> bool:
        """True for GTK 3, where an accessibility action that opens a modal dialog freezes the application."""
        return self.toolkit.lower() == "gtk" and self.toolkit_version.startswith("3")


Limit = Literal["nodes", "depth", "time", "children"]


@dataclass(frozen=True, slots=True)
class TreeLimits:
    """The limits at which reading a tree stops."""

    max_nodes: int = 5_000
    max_depth: int = 64
    time_s: float = 6.0
    bounds: bool = True
    """Query the bounds of visible elements."""
    values: bool = True
    """Query the text and value of visible input fields."""
    bulk: bool = True
    """Read the whole application in one call where supported; slower for a few elements."""
    roles: frozenset[str] = frozenset()
    """Only elements of these roles, fast where the application can search by role; empty means all."""
    cells: bool = True
    """Read the visible cells of an endless sheet; else the selected one alone."""


@dataclass(slots=True)
class Tree:
    """Elements in reading order, parents before children. `cut_by` lists the limits that truncated it."""

    root: ElementId
    elements: list[Element]
    cut_by: tuple[Limit, ...] = ()

    @property
    def truncated(self) -> bool:
        return bool(self.cut_by)


@dataclass(frozen=True, slots=True)
class Change:
    """One change event from an application."""

    app: str
    path: str
    kind: str
    """Such as `object:state-changed:checked` or `window:activate`."""
    detail: int = 0
    at: float = 0.0
    child: ElementId | None = None
    """The child that was added or removed, for a change of children."""


class Changes(Protocol):
    """A stream of change events from applications, for as long as it is open."""

    def __aiter__(self) -> AsyncIterator[Change]: ...

    def put(self, change: Change) -> None:
        """Add a change that was detected by other means."""
        ...

    def taken(self) -> list[Change]:
        """All changes that have arrived and were not yet consumed, without waiting."""
        ...

    async def wait(self, timeout_s: float) -> bool:
        """Return True as soon as a change has arrived, False on timeout."""
        ...


class Accessibility(Protocol):
    """The accessibility trees of a desktop's applications."""

    async def applications(self) -> list[Application]:
        """The applications that expose an accessibility tree, with their windows."""
        ...

    async def hidden(self) -> list[str]:
        """One sentence for each application with a window but no tree: what to enable."""
        ...

    async def tree(self, root: ElementId, limits: TreeLimits = TreeLimits()) -> Tree:
        """The elements at and below `root`.

        Raises:
            ElementNotFound: there is no such element any more.
        """
        ...

    async def element(self, element_id: ElementId) -> Element:
        """One element as it is now, with its bounds.

        Raises:
            ElementNotFound: there is no such element any more.
        """
        ...

    async def ancestors(self, element_id: ElementId) -> list[Element]:
        """The element's ancestors, nearest first, up to its window."""
        ...

    async def focused(self, app: str | None = None) -> Element | None:
        """The element with the keyboard focus, of one application or of the active window."""
        ...

    async def text(self, element_id: ElementId, *, max_chars: int = 100_000) -> str | None:
        """The element's text; None when it has none or is a password field."""
        ...

    async def text_length(self, element_id: ElementId) -> int | None:
        """The number of characters of its text; None when it has no text."""
        ...

    async def caret(self, element_id: ElementId) -> tuple[int, int]:
        """The selection as start and end; both are the caret position when nothing is selected."""
        ...

    async def set_text(self, element_id: ElementId, text: str, *, caret: int | None = None) -> bool:
        """Replace its whole text and place the caret; False when the application refused."""
        ...

    async def set_value(self, element_id: ElementId, value: float) -> float:
        """Set a slider or spinner; returns the value read back."""
        ...

    async def actions(self, element_id: ElementId) -> list[str]:
        """The names of the actions it offers."""
        ...

    async def perform(self, element_id: ElementId, action: int = 0) -> bool:
        """Do one of its actions, the first by default; False when the application refused.

        Raises:
            TimedOut: the application did not answer; it may be frozen.
        """
        ...

    async def select_child(self, element_id: ElementId, index: int) -> bool:
        """Select one child of a list, combo box or menu."""
        ...

    async def focus(self, element_id: ElementId) -> bool:
        """Give it the keyboard focus."""
        ...

    async def scroll_to(self, element_id: ElementId) -> bool:
        """Ask the application to bring it into view; False when it cannot."""
        ...

    async def is_alive(self, app: str, *, timeout_s: float = 1.0) -> bool:
        """True when the application still answers."""
        ...

    def changes(self, kinds: Sequence[str] = ()) -> AbstractAsyncContextManager[Changes]:
        """Subscribe to change events until the context exits; all kinds when none is named."""
        ...

"""Pointer and keyboard by a remote control session, for desktops without virtual devices (GNOME, KDE)."""

from collections.abc import Sequence
from itertools import pairwise

from computer_linker.computer.facets.keyboard import key_name, keysym_of
from computer_linker.computer.facets.pointer import Button, Modifier
from computer_linker.computer.local.linux.wayland.pointer import BUTTONS, LastPlace, steps
from computer_linker.computer.local.linux.wayland.portal.layout import Layout
from computer_linker.computer.local.linux.wayland.portal.session import RemoteSession, Stroke
from computer_linker.errors import InvalidRequest, UnsupportedPlatform
from computer_linker.model.geometry import Point

_VERTICAL, _HORIZONTAL = 0, 1
_ENTER = 0xFF0D


class RemotePointer(LastPlace):
    """Pointer by remote control."""

    def __init__(self, session: RemoteSession) -> None:
        self._session = session

    async def move(self, to: Point) -> None:
        """Move the pointer."""
        async with self._session.act() as act:
            await self._go(act, to)

    async def click(
        self, at: Point, *, button: Button = "left", count: int = 1, modifiers: Sequence[Modifier] = ()
    ) -> None:
        """Move, then press and release."""
        async with self._session.act() as act:
            await self._go(act, at)
            async with act.held(_keys(modifiers)):
                for _ in range(count):
                    async with act.held([Stroke("button", BUTTONS[button])]):
                        pass

    async def drag(self, path: Sequence[Point], *, button: Button = "left", modifiers: Sequence[Modifier] = ()) -> None:
        """Press at the first point, move through the others, release at the last."""
        async with self._session.act() as act:
            await self._go(act, path[0])
            async with act.held([*_keys(modifiers), Stroke("button", BUTTONS[button])]):
                for start, end in pairwise(path):
                    for point in steps(start, end):
                        await self._go(act, point)

    async def scroll(self, at: Point, *, dx: int = 0, dy: int = 0, modifiers: Sequence[Modifier] = ()) -> None:
        """Whole notches of a wheel."""
        async with self._session.act() as act:
            await self._go(act, at)
            async with act.held(_keys(modifiers)):
                for axis, notches in ((_VERTICAL, dy), (_HORIZONTAL, dx)):
                    for _ in range(abs(notches)):
                        await act.turn(axis, 1 if notches > 0 else -1)

    async def _go(self, act: RemoteSession, to: Point) -> None:
        await act.move(to)
        self._last = to


class RemoteKeyboard:
    """Keyboard by remote control: only the keys of the person's own layout."""

    def __init__(self, session: RemoteSession) -> None:
        self._session = session

    async def press(self, keys: Sequence[str], *, count: int = 1) -> None:
        """One key or a chord."""
        names = [key_name(key) for key in keys]
        async with self._session.act() as act:
            layout = await act.layout()
            strokes = [Stroke("key", _known(layout, name)) for name in names]
            for _ in range(count):
                async with act.held(strokes):
                    pass

    async def can_type(self, text: str) -> bool:
        """True when the layout has every character."""
        async with self._session.act() as act:
            return not _lacking(await act.layout(), text)

    async def type_text(self, text: str) -> None:
        """Enter text by keys."""
        async with self._session.act() as act:
            layout = await act.layout()
            if lacking := _lacking(layout, text):
                raise UnsupportedPlatform(
                    f"The desktop's keyboard layout lacks {lacking!r}; set this text in its field instead."
                )
            for character in text:
                async with act.held([Stroke("key", _ENTER if character == "\n" else layout.characters[character])]):
                    pass


def _keys(modifiers: Sequence[Modifier]) -> list[Stroke]:
    return [Stroke("key", keysym_of(name)) for name in modifiers]


def _known(layout: Layout, name: str) -> int:
    keysym = layout.characters.get(name) if len(name) == 1 else keysym_of(name)
    if keysym is None or keysym not in layout.keysyms:
        raise InvalidRequest(f"The keyboard layout has no key {name!r}.")
    return keysym


def _lacking(layout: Layout, text: str) -> str:
    """The first character that the layout lacks, if any."""
    return next((one for one in text if one != "\n" and one not in layout.characters), "")

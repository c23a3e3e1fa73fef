"""Actions on one element: its actions, text, value, selection and focus."""

from typing import Any

from computer_linker.computer.facets.accessibility import ElementId
from computer_linker.computer.local.linux.atspi.names import (
    ACCESSIBLE,
    ACTION,
    COMPONENT,
    EDITABLE_TEXT,
    PROPERTIES,
    SELECTION,
    TEXT,
    VALUE,
    role_name,
)
from computer_linker.computer.local.linux.atspi.nodes import unpadded
from computer_linker.computer.local.linux.atspi.wire import Fault, Request, Wire, fault_error, get

_MAX_ACTIONS = 16
_ANYWHERE = 6
"""ATSPI_SCROLL_ANYWHERE: the least movement that brings the element into view."""


class Acts:
    """The AT-SPI calls that read or change one element."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    async def text(self, at: ElementId, max_chars: int) -> str | None:
        """The element's text; None without one, and always for a password."""
        role = await self._wire.call(Request(at, ACCESSIBLE, "GetRole"))
        if role_name(role) == "password-text":
            return None
        # Some toolkits return nothing for a range beyond the end, so the length is requested first.
        length = await self.text_length(at)
        if length is None:
            return None
        answer = await self._try(Request(at, TEXT, "GetText", "ii", (0, min(length, max_chars))))
        return unpadded(answer) if isinstance(answer, str) else None

    async def text_length(self, at: ElementId) -> int | None:
        answer = await self._try(get(at, TEXT, "CharacterCount"))
        return answer if isinstance(answer, int) else None

    async def caret(self, at: ElementId) -> tuple[int, int]:
        """Start and end of the selection, or the caret twice."""
        number = await self._try(Request(at, TEXT, "GetNSelections"))
        if isinstance(number, int) and number > 0:
            chosen = await self._try(Request(at, TEXT, "GetSelection", "i", (0,)))
            if isinstance(chosen, list) and len(chosen) == 2 and 0 <= chosen[0] <= chosen[1]:
                return int(chosen[0]), int(chosen[1])
        place = await self._try(get(at, TEXT, "CaretOffset"))
        length = await self.text_length(at) or 0
        offset = place if isinstance(place, int) and 0 <= place <= length else length
        return offset, offset

    async def set_text(self, at: ElementId, text: str, caret: int | None) -> bool:
        """Replace the whole text. InsertText is not used: Qt 6 reads beyond the text when given its length in bytes."""
        answer = await self._try(Request(at, EDITABLE_TEXT, "SetTextContents", "s", (text,)))
        if answer is not True:
            return False
        if caret is not None:
            await self._try(Request(at, TEXT, "SetCaretOffset", "i", (caret,)))
        return True

    async def set_value(self, at: ElementId, value: float) -> float:
        """Set the number and read it back."""
        from dbus_fast import Variant

        await self._must(Request(at, PROPERTIES, "Set", "ssv", (VALUE, "CurrentValue", Variant("d", value))))
        return float(await self._must(get(at, VALUE, "CurrentValue")))

    async def actions(self, at: ElementId) -> list[str]:
        """The names of its actions, a bounded number."""
        answer = await self._try(Request(at, ACTION, "GetActions"))
        names = [str(one[0]) for one in answer[:_MAX_ACTIONS]] if isinstance(answer, list) else []
        if any(names):
            return names
        # Chromium leaves the localised names empty; the plain ones are requested one by one.
        plain = await self._wire.call_all(
            [Request(at, ACTION, "GetName", "i", (place,)) for place in range(len(names))]
        )
        return [name if isinstance(name, str) else "" for name in plain]

    async def perform(self, at: ElementId, action: int) -> bool:
        return await self._must(Request(at, ACTION, "DoAction", "i", (action,))) is not False

    async def select_child(self, at: ElementId, index: int) -> bool:
        return await self._try(Request(at, SELECTION, "SelectChild", "i", (index,))) is True

    async def focus(self, at: ElementId) -> bool:
        return await self._try(Request(at, COMPONENT, "GrabFocus")) is True

    async def scroll_to(self, at: ElementId) -> bool:
        return await self._try(Request(at, COMPONENT, "ScrollTo", "u", (_ANYWHERE,))) is True

    async def _try(self, request: Request) -> Any:
        """The result or the Fault; an application that does not answer still raises."""
        answer = (await self._wire.call_all([request]))[0]
        if isinstance(answer, Fault) and answer.name == "timeout":
            raise fault_error(answer, request)
        return answer

    async def _must(self, request: Request) -> Any:
        return await self._wire.call(request)

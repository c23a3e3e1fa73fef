"""Entering text where the focus is: by keys where the layout has every character, else by a paste that gives the clipboard back.

Binding spare keys to foreign characters corrupts text (applications read the new layout late), so it is never done.
"""

from typing import TYPE_CHECKING, Literal

import anyio

from computer_linker.computer.facets.clipboard import Clip, text_clip
from computer_linker.errors import LimitExceeded

if TYPE_CHECKING:
    from computer_linker.computer.base import Computer

EntryMethod = Literal["keys", "paste"]
_BY_KEYS_AT_MOST = 40
_SETTLE_S = 2.0


async def enter_text(computer: "Computer", text: str, *, prefer: EntryMethod | None = None) -> EntryMethod:
    """Enter text by the quicker method that is exact; `prefer` forces one. The person's clipboard is put back after a paste."""
    by_keys = prefer == "keys" or (
        prefer is None and len(text) <= _BY_KEYS_AT_MOST and await computer.keyboard.can_type(text)
    )
    if by_keys:
        await computer.keyboard.type_text(text)
        return "keys"
    await paste_text(computer, text)
    return "paste"


async def paste_text(computer: "Computer", text: str) -> None:
    """Paste text with ctrl+V, wait until the application has taken it, and restore what the clipboard held."""
    before = await _held(computer)
    await computer.clipboard.write(text_clip(text))
    try:
        await computer.keyboard.press(["ctrl", "v"])
        await _taken(computer)
    finally:
        with anyio.CancelScope(shield=True), anyio.move_on_after(_SETTLE_S):
            await computer.clipboard.write(before)


async def _held(computer: "Computer") -> Clip:
    try:
        return await computer.clipboard.snapshot()
    except LimitExceeded:
        # Something huge is on the clipboard: losing it is worse than refusing to paste.
        raise LimitExceeded("The clipboard holds more than can be put back after a paste.") from None


async def _taken(computer: "Computer") -> None:
    wait = getattr(computer.clipboard, "wait_taken", None)
    if wait is not None:
        await wait(_SETTLE_S)

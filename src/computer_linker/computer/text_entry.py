"""Entering text where the focus is: by keys where the layout has every character, else by a paste.

After a paste the clipboard holds again what it held. Binding spare keys to foreign characters corrupts text
(applications read the new layout late), so it is never done.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Literal

import anyio

from computer_linker.computer.facets.clipboard import Clip, text_clip
from computer_linker.errors import LimitExceeded

if TYPE_CHECKING:
    from computer_linker.computer.base import Computer

EntryMethod = Literal["keys", "paste"]
Settled = Callable[[], Awaitable[object]]
_BY_KEYS_AT_MOST = 40
_TAKEN_S = 2.0
_RESTORE_S = 2.0


async def enter_text(
    computer: "Computer", text: str, *, prefer: EntryMethod | None = None, settled: Settled | None = None
) -> EntryMethod:
    """Enter text by the quicker method that is exact; `prefer` forces one. The person's clipboard is put back after a paste."""
    by_keys = prefer == "keys" or (
        prefer is None and len(text) <= _BY_KEYS_AT_MOST and await computer.keyboard.can_type(text)
    )
    if by_keys:
        await computer.keyboard.type_text(text)
        return "keys"
    await paste_text(computer, text, settled=settled)
    return "paste"


async def paste_text(computer: "Computer", text: str, *, settled: Settled | None = None) -> bool | None:
    """Paste text with ctrl+V and put back what the clipboard held.

    True once the focused application fetched it, False when it did not, None where the system cannot tell. Browsers fetch
    a new content before they paste it, so a caller that can see the text arrive gives `settled`, which is awaited before
    the clipboard is put back.
    """
    before = await _held(computer)
    await computer.clipboard.write(text_clip(text))
    try:
        await computer.keyboard.press(["ctrl", "v"])
        taken = await computer.clipboard.taken(_TAKEN_S)
        if settled is not None:
            await settled()
        return taken
    finally:
        with anyio.CancelScope(shield=True), anyio.move_on_after(_RESTORE_S):
            await computer.clipboard.write(before)


async def _held(computer: "Computer") -> Clip:
    try:
        return await computer.clipboard.snapshot()
    except LimitExceeded:
        # Losing what the person copied is worse than refusing to paste.
        raise LimitExceeded("The clipboard holds more than can be put back after a paste.") from None

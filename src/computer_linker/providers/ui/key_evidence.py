"""What keys must change in the field that has the focus: its text, caret and selection, or which element has the focus."""

from collections.abc import Awaitable, Callable, Sequence

from computer_linker.computer.facets.accessibility import Accessibility, Element
from computer_linker.errors import LinkError
from computer_linker.providers.ui.fields import is_field

_MAX_READ = 100_000
_EDITING = frozenset("backspace delete space left right up down home end page_up page_down".split())

Evidence = Callable[[], Awaitable[bool]]
"""Whether the effect can be read now."""


async def evidence_of(reader: Accessibility, one: Element, keys: Sequence[str]) -> Evidence | None:
    """How the effect of these keys will be read in the focused element; None where it may show nowhere."""
    if set(keys[:-1]) - {"shift"}:
        return None
    if keys[-1] == "tab":
        return lambda: _lost_focus(reader, one)
    if not is_field(one) or not (len(keys[-1]) == 1 or keys[-1] in _EDITING):
        return None
    before = await _held(reader, one)
    if before is None:
        return None

    async def changed() -> bool:
        # A field that cannot be read, because its application hangs, shows no effect.
        now = await _held(reader, one)
        return now is not None and now != before

    return changed


async def _held(reader: Accessibility, one: Element) -> tuple[str | None, int | None, tuple[int, int]] | None:
    try:
        text = None if one.is_password else await reader.text(one.id, max_chars=_MAX_READ)
        return text, await reader.text_length(one.id), await reader.caret(one.id)
    except LinkError:
        return None


async def _lost_focus(reader: Accessibility, one: Element) -> bool:
    try:
        return "focused" not in (await reader.element(one.id)).states
    except LinkError:
        return False

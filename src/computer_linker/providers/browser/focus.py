"""The element of a page that has the keyboard, so that nothing is typed into another one than the one that is meant."""

import json
from dataclasses import dataclass
from typing import Any

from computer_linker.errors import Conflict
from computer_linker.providers.browser.session import Session

_SCRIPT = """(() => {
  let a = document.activeElement;
  for (;;) {
    const inner = a && ((a.shadowRoot && a.shadowRoot.activeElement) || (a.contentDocument && a.contentDocument.activeElement));
    if (!inner) break;
    a = inner;
  }
  if (!a) return '{}';
  const b = a.getBoundingClientRect();
  return JSON.stringify({tag: a.tagName, type: a.type || '', fixed: !!a.readOnly, off: !!a.disabled, many: !!a.multiple,
    editable: !!a.isContentEditable, box: [b.x, b.y, b.width, b.height]});
})()"""
_TAKES_TEXT = frozenset({"text", "search", "url", "tel", "email", "password", "number"})
DATES = frozenset({"date", "time", "datetime-local", "month", "week"})
_NEAR = 4.0
_LOOKS = 3


@dataclass(frozen=True, slots=True)
class Focus:
    """What has the keyboard on a page."""

    tag: str
    type: str
    is_fixed: bool
    """Read-only or disabled."""
    is_multiple: bool
    is_editable: bool

    @property
    def takes_text(self) -> bool:
        """True for what typed text goes into. What a frame of another site holds cannot be seen."""
        if self.tag == "IFRAME":
            return True
        is_input = self.tag == "TEXTAREA" or (self.tag == "INPUT" and self.type in _TAKES_TEXT)
        return (is_input and not self.is_fixed) or self.is_editable

    @property
    def is_date(self) -> bool:
        return self.tag == "INPUT" and self.type in DATES and not self.is_fixed


async def focus(session: Session, at: str) -> Focus:
    """Give an element the keyboard, and say what has it then.

    Raises:
        Conflict: something else kept it, as when the element is disabled or takes no focus.
    """
    for number in range(_LOOKS):
        if number:
            # A page that scrolls smoothly moves the element for a moment.
            await session.ask(("wait", "100"))
        _, told, box = await session.ask(("focus", at), ("eval", _SCRIPT), ("get", "box", at))
        found = _read(told)
        if found.get("tag") == "IFRAME" or _holds(found.get("box"), box):
            return Focus(
                tag=str(found.get("tag")),
                type=str(found.get("type")),
                is_fixed=bool(found.get("fixed") or found.get("off")),
                is_multiple=bool(found.get("many")),
                is_editable=bool(found.get("editable")),
            )
    raise Conflict("The element did not take the keyboard focus, so nothing was entered.")


def _read(told: dict[str, Any]) -> dict[str, Any]:
    """The script's answer. A page can change what it says, but only about itself."""
    try:
        found = json.loads(str(told.get("result")))
    except ValueError:
        return {}
    return found if type(found) is dict else {}


def _holds(outer: Any, inner: dict[str, Any]) -> bool:
    """True where the element lies in what has the keyboard: the parts of a date field give it to the whole field."""
    try:
        left, top, width, height = (float(one) for one in outer)
        x, y, across, down = (float(inner[name]) for name in ("x", "y", "width", "height"))
    except (TypeError, ValueError, KeyError):
        return False
    return (
        left - _NEAR <= x and top - _NEAR <= y
        and x + across <= left + width + _NEAR and y + down <= top + height + _NEAR
    )  # fmt: skip

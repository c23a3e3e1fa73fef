"""The focused element of a page, so that text is typed only into the intended one."""

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
_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Focus:
    """The focused element of a page."""

    tag: str
    type: str
    is_fixed: bool
    """Read-only or disabled."""
    is_multiple: bool
    is_editable: bool

    @property
    def takes_text(self) -> bool:
        """True for an element that accepts typed text. The content of a cross-origin frame is unknown."""
        if self.tag == "IFRAME":
            return True
        is_input = self.tag == "TEXTAREA" or (self.tag == "INPUT" and self.type in _TAKES_TEXT)
        return (is_input and not self.is_fixed) or self.is_editable

    @property
    def is_date(self) -> bool:
        return self.tag == "INPUT" and self.type in DATES and not self.is_fixed


async def focus(session: Session, at: str) -> Focus:
    """Focus an element, and return what has the focus then.

    Raises:
        Conflict: something else has the focus, such as when the element is disabled or not focusable.
    """
    for number in range(_ATTEMPTS):
        if number:
            # A page that scrolls smoothly moves the element for a moment.
            await session.ask(("wait", "100"))
        _, evaluated, box = await session.ask(("focus", at), ("eval", _SCRIPT), ("get", "box", at))
        found = _read(evaluated)
        if found.get("tag") == "IFRAME" or _holds(found.get("box"), box):
            return Focus(
                tag=str(found.get("tag")),
                type=str(found.get("type")),
                is_fixed=bool(found.get("fixed") or found.get("off")),
                is_multiple=bool(found.get("many")),
                is_editable=bool(found.get("editable")),
            )
    raise Conflict("The element did not take the keyboard focus, so nothing was entered.")


def _read(evaluated: dict[str, Any]) -> dict[str, Any]:
    """The script's result. A page can falsify it, but only about itself."""
    try:
        found = json.loads(str(evaluated.get("result")))
    except ValueError:
        return {}
    return found if type(found) is dict else {}


def _holds(outer: Any, inner: dict[str, Any]) -> bool:
    """True where the focused element contains this one: a part of a date field focuses the whole field."""
    try:
        left, top, width, height = (float(one) for one in outer)
        x, y, across, down = (float(inner[name]) for name in ("x", "y", "width", "height"))
    except (TypeError, ValueError, KeyError):
        return False
    return (
        left - _NEAR <= x and top - _NEAR <= y
        and x + across <= left + width + _NEAR and y + down <= top + height + _NEAR
    )  # fmt: skip

"""The elements of a page from agent-browser's snapshot, with references of the same kind as the desktop's."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from computer_linker.computer.facets.accessibility import Element, ElementId
from computer_linker.errors import Conflict, PermissionDenied, StaleReference
from computer_linker.model.scope import Scope
from computer_linker.providers.browser.addresses import BLANK, is_inside, shown
from computer_linker.providers.browser.session import Session, text_in
from computer_linker.providers.refs import ENOUGH, Reference, References, difference, likeness

_MAX_TEXT = 1_000_000
_MAX_NAME = 2000
_HEAD = re.compile(r"(?P<indent> *)- (?P<role>[^\s\"\[:]+)")
_FACTS = re.compile(r"\[([^\[\]]*)\](?=: |\Z)")
"""Each bracket is read to the next one and no further: names come from the page, which may contain many brackets."""
_REF = re.compile(r"\bref=(e\d+)\b")


@dataclass(frozen=True, slots=True)
class SeenPage:
    """One element of a page."""

    element: Element
    depth: int


@dataclass(frozen=True, slots=True)
class Page:
    """A snapshot of a page."""

    url: str
    title: str
    outline: str
    """The page as lines, with agent-browser's own references."""
    seen: dict[str, SeenPage]
    """Elements by agent-browser's reference."""

    def with_refs(self, refs: Mapping[ElementId, str]) -> str:
        """The outline with our references."""

        def ours(found: re.Match[str]) -> str:
            one = self.seen.get(found[1])
            ref = refs.get(one.element.id) if one is not None else None
            return "" if ref is None else f"ref={ref}"

        return _REF.sub(ours, self.outline)


async def look(session: Session, scope: Scope, *, only_controls: bool = False) -> Page:
    """Take a snapshot of the page. Raises PermissionDenied when it shows what the scope may not see."""
    snapshot = ("snapshot", "-i") if only_controls else ("snapshot",)
    # The snapshot first: it fails at once when a dialog is open, where the others would wait for it.
    snapshot_data, where, title = await session.ask(snapshot, ("get", "url"), ("get", "title"))
    url = await allowed(session, scope, where)
    outline = text_in(snapshot_data, "snapshot", _MAX_TEXT)
    refs = snapshot_data.get("refs")
    return Page(url, text_in(title, "title"), outline, _seen(session, outline, refs if type(refs) is dict else {}))


async def allowed(session: Session, scope: Scope, where: dict[str, Any]) -> str:
    """The browser's address (for a file, its path in the scope). A page that the scope may not see is left at once."""
    url = text_in(where, "url")
    if not is_inside(url, scope):
        await session.ask(("open", BLANK))
        raise PermissionDenied("The page led to a place that this scope does not show; it was left.", rule="scheme")
    return shown(url, scope)


def give(references: References, scope: Scope, session: Session, page: Page) -> dict[ElementId, str]:
    """Our references for a page's elements."""
    return references.give(scope.id, session.app, [one.element for one in page.seen.values()], from_window=False)


def resolve(references: References, scope: Scope, session: Session, page: Page, ref: str) -> str:
    """agent-browser's reference for ours, if it still identifies the same element.

    Raises:
        StaleReference: the element is gone or different by now; the details offer the likeliest successor.
    """
    found = references.find(scope.id, ref)
    if found.element.id.app != session.app.id:
        raise StaleReference(
            "The reference is not of the page that is open. Look with browser.snapshot.", ref=ref, best=None
        )
    now = page.seen.get(found.element.id.path)
    why = "it is gone" if now is None else difference(found, now.element)
    if not why:
        return "@" + found.element.id.path
    best = _successor(references, scope, session, page, found)
    raise StaleReference(f"The reference no longer holds: {why}.", ref=ref, reason=why, best=best)


def _successor(
    references: References, scope: Scope, session: Session, page: Page, found: Reference
) -> dict[str, Any] | None:
    scored = [
        (likeness(found.element, (), one.element, (), seen_window=None, now_window=None), one.element)
        for one in page.seen.values()
    ]
    score, best = max(scored, key=lambda pair: pair[0], default=(0.0, None))
    if best is None or score < ENOUGH:
        return None
    refs = give(references, scope, session, page)
    return {"ref": refs[best.id], "role": best.role, "name": best.name, "score": score}


def _seen(session: Session, outline: str, refs: dict[str, Any]) -> dict[str, SeenPage]:
    """The elements in reading order. Role and name come from the reply's table, in which a page cannot forge lines."""
    seen: dict[str, SeenPage] = {}
    for line in outline.split("\n"):
        head, found = _HEAD.match(line), _facts_in(line, refs)
        known = refs.get(found[0]) if found is not None else None
        if head is None or found is None or type(known) is not dict or found[0] in seen:
            continue
        ref, facts, value = found
        element = Element(
            ElementId(session.app.id, ref),
            None,
            text_in(known, "role", 60) or head["role"],
            text_in(known, "name", 400),
            tuple(fact.strip() for fact in facts.split(",") if "ref=" not in fact),
            value=value,
        )
        seen[ref] = SeenPage(element, len(head["indent"]) // 2)
    return seen


def _facts_in(line: str, refs: dict[str, Any]) -> tuple[str, str, str | None] | None:
    """The reference in a line of the outline, the attributes in its brackets, and the value after them.

    A name may imitate all of that. The line belongs to the element whose own name precedes the brackets.
    """
    chosen: tuple[str, re.Match[str]] | None = None
    for facts in _FACTS.finditer(line):
        if ref := _REF.search(facts[1]):
            known = refs.get(ref[1])
            name = text_in(known, "name", _MAX_NAME) if type(known) is dict else ""
            if name and line.endswith(f'"{name}" ', 0, facts.start()):
                chosen = ref[1], facts
                break
            chosen = chosen or (ref[1], facts)
    if chosen is None:
        return None
    ref_of, facts = chosen
    return ref_of, facts[1], line[facts.end() + 2 :] if facts.end() < len(line) else None


# The focused element of a page, so that text is typed only into the intended one.

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

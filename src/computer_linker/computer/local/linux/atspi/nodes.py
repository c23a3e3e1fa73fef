"""Builds elements from AT-SPI replies: one cache item, or several single replies."""

import re
from typing import Any

from computer_linker.computer.facets.accessibility import Application, Element, ElementId
from computer_linker.computer.local.linux.atspi.names import (
    DEFUNCT,
    NULL_PATH,
    interface_names,
    role_name,
    state_bits,
    state_names,
)

_MAX_NAME = 1_000
_CLASS_NAME = re.compile(r"Gtk[A-Z][A-Za-z]{2,40}")

_ACTS = frozenset(
    "push-button toggle-button check-box radio-button menu-item check-menu-item radio-menu-item menu combo-box link page-tab "
    "list-item tree-item table-cell push-button-menu".split()
)
_READS = frozenset("text entry password-text spin-button paragraph terminal combo-box".split())
_MEASURES = frozenset("slider spin-button scroll-bar dial progress-bar level-bar".split())
_SELECTS = frozenset("list list-box table tree tree-table page-tab-list combo-box menu menu-bar".split())


def element_id(pair: Any) -> ElementId | None:
    """The id of an object reference; None for the null object."""
    app, path = pair
    return None if not app or path == NULL_PATH else ElementId(app, path)


def from_cache(item: list[Any]) -> Element | None:
    """The element of one cache item, in either of the two layouts toolkits send; None for one that no longer exists."""
    if isinstance(item[3], list):
        place, _app, parent, kids, interfaces, name, role, about, words = item
        index, count = -1, len(kids)
    else:
        place, _app, parent, index, count, interfaces, name, role, about, words = item
    bits = state_bits(words)
    at = element_id(place)
    if at is None or bits & DEFUNCT:
        return None
    return Element(
        id=at,
        parent=element_id(parent),
        role=role_name(role),
        name=shown_name(name),
        states=state_names(bits),
        interfaces=interface_names(tuple(interfaces)),
        description=about[:_MAX_NAME],
        children=count,
        index=index,
    )


def shown_name(name: str) -> str:
    """The name a person would read. GTK 4 names a control by its class when it has no better one."""
    if name.startswith("Gtk") and _CLASS_NAME.fullmatch(name):
        return ""
    return name if len(name) <= _MAX_NAME else name[:_MAX_NAME] + "…"


def implied_interfaces(role: str, states: tuple[str, ...]) -> frozenset[str]:
    """The interfaces Qt implements for a role, which saves one call per element."""
    found = {"Accessible", "Component"}
    if role in _ACTS:
        found.add("Action")
    if role in _READS:
        found.add("Text")
        if "editable" in states or (role != "combo-box" and "read-only" not in states):
            found.add("EditableText")
    if role in _MEASURES:
        found.add("Value")
    if role in _SELECTS:
        found.add("Selection")
    return frozenset(found)


# UTF-16 offsets, as Qt and Firefox count positions in a text: an emoji, for example, is two code units.

_LAST_SINGLE_UNIT = "\uffff"
_PADDED = re.compile("([\U00010000-\U0010ffff])\ufeff")


def uses_utf16_offsets(app: Application) -> bool:
    """True for Qt and Firefox."""
    return app.toolkit.lower() in ("qt", "gecko")


def unpadded(text: str) -> str:
    """The text without the placeholder that Firefox inserts for a second surrogate."""
    return _PADDED.sub(r"\1", text)


def to_utf16(text: str, index: int) -> int:
    """The UTF-16 offset of the character at `index`."""
    return index + sum(character > _LAST_SINGLE_UNIT for character in text[:index])


def from_utf16(text: str, offset: int) -> int:
    """The index of the character that contains the UTF-16 `offset`."""
    counted = 0
    for index, character in enumerate(text):
        if counted >= offset:
            return index
        counted += 2 if character > _LAST_SINGLE_UNIT else 1
    return len(text)

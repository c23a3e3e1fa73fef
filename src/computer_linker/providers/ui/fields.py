"""Text fields: which elements accept text, and in which of them select-all is limited to the element."""

from computer_linker.computer.facets.accessibility import Accessibility, Element
from computer_linker.errors import Conflict
from computer_linker.providers.ui.roles import TEXTS

_FIELDS = frozenset("text entry password-text spin-button autocomplete".split())
"""Roles whose select-all selects the text of that one element."""
_NEVER = frozenset(
    "table table-cell tree tree-table tree-item list list-box list-item terminal document-spreadsheet".split()
)


def is_field(one: Element) -> bool:
    """True for an element with editable text of its own; a table of editable cells has none."""
    if one.role in _NEVER or "manages-descendants" in one.states or "read-only" in one.states:
        return False
    is_editable = "editable" in one.states or "EditableText" in one.interfaces
    return one.role in _FIELDS or (is_editable and bool({"Text", "EditableText"} & one.interfaces))


async def refuse_uncleared(reader: Accessibility, one: Element) -> None:
    """Raise Conflict unless select-all would select exactly the text of this focused element."""
    now = await reader.element(one.id)
    is_sure = is_field(now) and "focused" in now.states
    if is_sure and now.role not in _FIELDS and now.role != "combo-box":
        # A paragraph of a document: select-all would select the whole document.
        is_sure = not any("editable" in above.states for above in await reader.ancestors(one.id))
    if not is_sure:
        raise Conflict(
            "The element is no text field that has the keyboard focus, so what it holds cannot be cleared by keys. "
            "Nothing was typed.",
            role=now.role,
        )


def refuse_unwritable(one: Element) -> None:
    """Raise Conflict for an element that accepts no text."""
    if (
        not ({"EditableText"} & one.interfaces or "editable" in one.states or one.role in TEXTS)
        or "read-only" in one.states
    ):
        raise Conflict("The element takes no text.", role=one.role)
    if not {"enabled", "sensitive"}.intersection(one.states):
        raise Conflict("The element is disabled.", role=one.role)

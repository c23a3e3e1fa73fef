"""Role names of people and other systems, and groups of roles."""

from computer_linker.computer.facets.accessibility import Accessibility, Element
from computer_linker.errors import Conflict

_FAMILIES: dict[str, str] = {
    "button": "push-button toggle-button push-button-menu",
    "checkbox": "check-box check-menu-item",
    "radio": "radio-button radio-menu-item",
    "textbox": "text entry password-text terminal autocomplete",
    "textfield": "text entry password-text autocomplete",
    "textarea": "text entry",
    "input": "text entry password-text spin-button autocomplete",
    "password": "password-text",
    "securetextfield": "password-text",
    "statictext": "label static paragraph",
    "label": "label static",
    "text": "text entry password-text autocomplete",
    "combobox": "combo-box",
    "popupbutton": "combo-box",
    "select": "combo-box",
    "menuitem": "menu-item check-menu-item radio-menu-item menu",
    "menubaritem": "menu menu-item",
    "tab": "page-tab",
    "tabgroup": "page-tab-list",
    "window": "frame dialog window alert",
    "sheet": "dialog",
    "cell": "table-cell",
    "row": "table-row",
    "listitem": "list-item tree-item",
    "list": "list list-box",
    "listbox": "list-box list",
    "outline": "tree tree-table",
    "webarea": "document-web",
    "document": "document-web document-frame document-text",
    "group": "panel grouping section form",
    "scrollarea": "scroll-pane",
    "splitgroup": "split-pane",
    "progressindicator": "progress-bar level-bar",
    "spinbutton": "spin-button",
    "incrementor": "spin-button",
    "toolbar": "tool-bar",
    "menubar": "menu-bar",
}

STRUCTURAL = frozenset(
    "panel filler section scroll-pane viewport split-pane grouping form unknown redundant-object layered-pane glass-pane "
    "root-pane html-container paragraph block-quote landmark article header footer extended internal-frame table-row "
    "list-item-marker static-container page content-deletion content-insertion mark".split()
)
"""Containers that are uninformative unless named."""
PRESSED = frozenset(
    "push-button toggle-button check-box radio-button menu-item check-menu-item radio-menu-item menu link page-tab combo-box "
    "push-button-menu".split()
)
"""Roles whose accessibility action equals a click. A text field's action is Enter, so it is not among them."""
TEXTS = frozenset("text entry password-text spin-button terminal autocomplete combo-box document-text".split())
LABELS = frozenset("label static".split())


def roles_called(name: str) -> frozenset[str]:
    """The roles of a name: an exact role, a family such as `button`, or another system's name such as `AXButton`."""
    name = name.strip()
    if name.startswith("AX"):
        name = name[2:]
    exact = "-".join(name.lower().replace("_", " ").replace("-", " ").split())
    family = _FAMILIES.get(exact.replace("-", ""))
    return frozenset((family or "").split()) | {exact} if family else frozenset({exact})


# Text fields: which elements accept text, and in which of them select-all is limited to the element.

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
        not ({"EditableText"} & one.interfaces or "editable" in one.states or one.role in TEXTS - {"combo-box"})
        or "read-only" in one.states
    ):
        raise Conflict("The element takes no text.", role=one.role)
    if not {"enabled", "sensitive"}.intersection(one.states):
        raise Conflict("The element is disabled.", role=one.role)

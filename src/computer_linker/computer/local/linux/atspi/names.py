"""AT-SPI constants: interfaces, roles and states in the protocol's order, and match rules for the Collection interface."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

PREFIX = "org.a11y.atspi."
ACCESSIBLE = PREFIX + "Accessible"
ACTION = PREFIX + "Action"
APPLICATION = PREFIX + "Application"
CACHE = PREFIX + "Cache"
COLLECTION = PREFIX + "Collection"
COMPONENT = PREFIX + "Component"
EDITABLE_TEXT = PREFIX + "EditableText"
REGISTRY = PREFIX + "Registry"
SELECTION = PREFIX + "Selection"
TEXT = PREFIX + "Text"
VALUE = PREFIX + "Value"
TABLE = PREFIX + "Table"
PROPERTIES = "org.freedesktop.DBus.Properties"

ROOT_PATH = "/org/a11y/atspi/accessible/root"
CACHE_PATH = "/org/a11y/atspi/cache"
REGISTRY_PATH = "/org/a11y/atspi/registry"
NULL_PATH = "/org/a11y/atspi/null"

ROLES = tuple(
    "invalid accelerator-label alert animation arrow calendar canvas check-box check-menu-item color-chooser "
    "column-header combo-box date-editor desktop-icon desktop-frame dial dialog directory-pane drawing-area "
    "file-chooser filler focus-traversable font-chooser frame glass-pane html-container icon image internal-frame "
    "label layered-pane list list-item menu menu-bar menu-item option-pane page-tab page-tab-list panel "
    "password-text popup-menu progress-bar push-button radio-button radio-menu-item root-pane row-header scroll-bar "
    "scroll-pane separator slider spin-button split-pane status-bar table table-cell table-column-header "
    "table-row-header tearoff-menu-item terminal text toggle-button tool-bar tool-tip tree tree-table unknown "
    "viewport window extended header footer paragraph ruler application autocomplete editbar embedded entry chart "
    "caption document-frame heading page section redundant-object form link input-method-window table-row tree-item "
    "document-spreadsheet document-presentation document-text document-web document-email comment list-box grouping "
    "image-map notification info-bar level-bar title-bar block-quote audio video definition article landmark log "
    "marquee math rating timer static math-fraction math-root subscript superscript description-list "
    "description-term description-value footnote content-deletion content-insertion mark suggestion "
    "push-button-menu".split()
)
STATES = tuple(
    "invalid active armed busy checked collapsed defunct editable enabled expandable expanded focusable focused "
    "has-tooltip horizontal iconified modal multi-line multiselectable opaque pressed resizable selectable selected "
    "sensitive showing single-line stale transient vertical visible manages-descendants indeterminate required "
    "truncated animated invalid-entry supports-autocompletion selectable-text is-default visited checkable has-popup "
    "read-only".split()
)
DEFUNCT = 1 << STATES.index("defunct")

Rule = list[Any]
_ALL, _ANY = 1, 2
_WORDS_OF_ROLES = 4


def role_name(number: int) -> str:
    """The role's name; a number unknown to this protocol version is included in the name."""
    return ROLES[number] if 0 <= number < len(ROLES) else f"role-{number}"


def state_bits(words: list[int]) -> int:
    """The two words of a state set as one number."""
    low = words[0] if words else 0
    return low | (words[1] << 32 if len(words) > 1 else 0)


@lru_cache(maxsize=1024)
def state_names(bits: int) -> tuple[str, ...]:
    """The names of the states that are set."""
    return tuple(name for place, name in enumerate(STATES) if bits >> place & 1)


@lru_cache(maxsize=1024)
def interface_names(interfaces: tuple[str, ...]) -> frozenset[str]:
    """The last components of the interface names."""
    return frozenset(name.rsplit(".", 1)[-1] for name in interfaces)


def by_states(*states: str) -> Rule:
    """Elements that are in all of these states."""
    return _rule(states=_bits((STATES.index(state) for state in states), 2))


def by_roles(roles: Iterable[str]) -> Rule:
    """Elements that have one of these roles."""
    return _rule(roles=_bits((ROLES.index(role) for role in roles), _WORDS_OF_ROLES), role_match=_ANY)


def _rule(*, states: list[int] | None = None, roles: list[int] | None = None, role_match: int = _ALL) -> Rule:
    return [states or [0, 0], _ALL, {}, _ALL, roles or [0] * _WORDS_OF_ROLES, role_match, [], _ALL, False]


def _bits(numbers: Iterable[int], words: int) -> list[int]:
    """The numbers as bits of so many 32-bit words, which D-Bus carries as signed."""
    found = [0] * words
    for number in numbers:
        found[number // 32] |= 1 << number % 32
    return [word - (1 << 32) if word >= 1 << 31 else word for word in found]

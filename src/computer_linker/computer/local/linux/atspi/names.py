"""The numbers of AT-SPI as names: interfaces, roles and states, in the protocol's own order."""

from functools import lru_cache

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
SHOWING = 1 << STATES.index("showing")
VISIBLE = 1 << STATES.index("visible")
DEFUNCT = 1 << STATES.index("defunct")
FOCUSED = 1 << STATES.index("focused")

WINDOW_ROLES = frozenset({"frame", "dialog", "window", "alert", "file-chooser", "color-chooser", "font-chooser"})


def role_name(number: int) -> str:
    """The role's name; a number this protocol version does not know stays visible as one."""
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
    """The interfaces' last words."""
    return frozenset(name.rsplit(".", 1)[-1] for name in interfaces)

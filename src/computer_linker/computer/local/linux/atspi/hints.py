"""What to enable when an application has a window but exposes no tree."""

from collections.abc import Sequence

from computer_linker.computer.facets.accessibility import Application
from computer_linker.model.geometry import Window

_REMEDIES = (
    (
        ("chromium", "chrome", "google-chrome", "electron", "brave", "code", "slack", "discord", "msedge"),
        "{app} reads the accessibility switch only when it starts. It is on now: close {app} and start it again.",
    ),
    (
        ("libreoffice", "soffice"),
        "{app} shows its controls only with the GTK interface: install libreoffice-gtk3 and start it again.",
    ),
    (
        ("xterm", "uxterm", "rxvt", "urxvt", "st", "alacritty", "kitty"),
        "{app} draws its own text and never describes it. Use screen.ocr on its window.",
    ),
)
_OTHERWISE = (
    "{app} describes no controls. Start it again now that accessibility is on (and without NO_AT_BRIDGE), or use "
    "screen.capture and screen.ocr."
)


def hidden_trees(windows: Sequence[Window], apps: Sequence[Application]) -> list[str]:
    """One sentence for each application that has a window but no tree."""
    seen = {app.pid for app in apps if app.windows}
    sentences: dict[str, None] = {}
    for window in windows:
        if window.pid is not None and window.pid not in seen and window.is_visible:
            sentences[_remedy(window.app or window.title)] = None
    return list(sentences)


def _remedy(app: str) -> str:
    lowered = app.lower()
    for names, sentence in _REMEDIES:
        if any(lowered == name or lowered.startswith((name + "-", name + ".")) for name in names):
            return sentence.format(app=app)
    return _OTHERWISE.format(app=app)

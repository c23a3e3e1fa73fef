"""Converts the extents a toolkit reports to desktop coordinates.

On X11 most toolkits answer in screen coordinates, in their own logical units; GTK 4, and every toolkit on Wayland, answers
relative to its window's content. The window system's own rectangle of the window gives the scale and the origin.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from computer_linker.computer.facets.accessibility import Application
from computer_linker.model.geometry import Rect, Window

Extents = tuple[int, int, int, int]
_FAR = 1_000_000
_MAX_SHADOW = 80


@dataclass(frozen=True, slots=True)
class Placement:
    """The transformation of one window's extents to desktop rectangles."""

    scale: float = 1.0
    from_x: float = 0.0
    from_y: float = 0.0
    to_x: float = 0.0
    to_y: float = 0.0

    def __call__(self, extents: Extents) -> Rect | None:
        """The desktop rectangle; None for an empty or unplaced one."""
        x, y, width, height = extents
        if self.to_x > _FAR:
            return None
        if width <= 0 or height <= 0 or abs(x) > _FAR or abs(y) > _FAR or max(width, height) > _FAR:
            return None
        return Rect(
            x=round((x - self.from_x) * self.scale + self.to_x),
            y=round((y - self.from_y) * self.scale + self.to_y),
            width=max(1, round(width * self.scale)),
            height=max(1, round(height * self.scale)),
        )


AS_SAID = Placement()
NOWHERE = Placement(to_x=2 * _FAR)
"""For a window whose position is unknown: no bounds are better than wrong ones."""


def is_window_relative(app: Application) -> bool:
    """True for toolkits whose `screen` coordinates are relative to the window."""
    return app.toolkit.lower() == "gtk" and app.toolkit_version.startswith("4")


def placement(
    app: Application, title: str, frame: Extents, windows: Sequence[Window], *, on_wayland: bool = False
) -> Placement:
    """The placement of an application's window, from the frame it reports and the window system's rectangle."""
    window = matching(app, title, windows)
    is_relative = on_wayland or is_window_relative(app)
    if window is None or frame[2] <= 0 or frame[3] <= 0:
        return NOWHERE if is_relative else AS_SAID
    scale = _scale(window, frame)
    if scale == 1.0 and not is_relative:
        return AS_SAID
    # A window that draws its own shadow is larger than its frame by the same margin on both sides.
    margin_x = (window.bounds.width - frame[2] * scale) / 2
    margin_y = (window.bounds.height - frame[3] * scale) / 2
    if min(margin_x, margin_y) <= 0 or max(margin_x, margin_y) > _MAX_SHADOW:
        # A window being resized differs from its frame for a moment; that is not a shadow.
        margin_x = margin_y = 0.0
    return Placement(scale, frame[0], frame[1], window.bounds.x + margin_x, window.bounds.y + margin_y)


def matching(app: Application, title: str, windows: Sequence[Window]) -> Window | None:
    """The window system's window for an application's window: by process, then by title."""
    own = [window for window in windows if app.pid is not None and window.pid == app.pid]
    titled = [window for window in (own or windows) if title and window.title == title[:200]]
    if titled:
        return titled[0]
    return own[0] if len(own) == 1 else None


def _scale(window: Window, frame: Extents) -> float:
    across = window.bounds.width / frame[2]
    # Only whole and half steps are real scales; anything else is a shadow or border that only one side includes.
    stepped = in_steps(across)
    return stepped if stepped >= 1.25 and abs(across - stepped) < 0.1 else 1.0


def in_steps(scale: float) -> float:
    """Round to the nearest scale that can be configured."""
    return round(scale * 4) / 4

"""A list of rows under a header, with one of them selected. Draws the lines that are in sight and no others.

The library's own table measures every cell of every row on each change: 300 rows took a tenth of a second of processor time.
"""

from collections.abc import Sequence
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from computer_linker.watch.tables import Row, fitted

_HEADER, _SELECTED = Style(bold=True), Style(reverse=True)


class RowList(ScrollView, can_focus=True):
    """Rows by key. The selected one stays selected while it is there; the first one gives way to a newer one."""

    class Chosen(Message):
        """Enter was pressed on a row, or it was clicked while it was selected."""

    class Moved(Message):
        """Another row is selected, or the selected one has another text."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)"), Binding("down,j", "move(1)"), Binding("pageup", "page(-1)"),
        Binding("pagedown,space", "page(1)"), Binding("end", "move(1000000)"), Binding("enter", "choose"),
    ]  # fmt: skip

    def __init__(self, id: str) -> None:
        super().__init__(id=id)
        self._titles: Sequence[str] = ()
        self._widths: Sequence[int] = ()
        self._rows: Sequence[Row] = ()
        self._at = 0

    @property
    def row(self) -> Row | None:
        """The selected row."""
        return self._rows[self._at] if self._rows else None

    def set_columns(self, titles: Sequence[str], widths: Sequence[int]) -> None:
        if (titles, widths) != (self._titles, self._widths):
            self._titles, self._widths = titles, widths
            self.refresh()

    def show(self, rows: Sequence[Row]) -> None:
        """Show these rows instead of those before."""
        if rows == self._rows:
            return
        before = self.row
        keys = [row.key for row in rows]
        is_kept = self._at > 0 and before is not None and before.key in keys
        self._rows = rows
        self._at = keys.index(before.key) if is_kept and before is not None else min(self._at, max(0, len(rows) - 1))
        self.virtual_size = Size(0, len(rows) + 1)
        self._keep_in_sight()
        self.refresh()
        if self.row != before:
            self.post_message(self.Moved())

    def select(self, at: int) -> None:
        """Select a row by its place."""
        self._at = max(0, min(at, len(self._rows) - 1))
        self._keep_in_sight()
        self.refresh()
        self.post_message(self.Moved())

    def render_line(self, y: int) -> Strip:
        """One line of the screen; the first is the header, wherever the list is scrolled to."""
        at = self.scroll_offset.y + y - 1
        if y == 0:
            cells, style = [Text(title) for title in self._titles], _HEADER
        elif at < len(self._rows):
            cells, style = list(self._rows[at].cells), _SELECTED if at == self._at and self.has_focus else Style()
        else:
            return Strip.blank(self.size.width, self.rich_style)
        line = Text(end="")
        for cell, width in zip(cells, self._widths, strict=False):
            cut = fitted(cell, width)
            line.append_text(cut).append(" " * (width + 1 - cut.cell_len))
        segments = Strip(line.render(self.app.console)).adjust_cell_length(self.size.width)
        return segments.apply_style(self.rich_style + style)

    def on_resize(self) -> None:
        self._keep_in_sight()

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        at = self.scroll_offset.y + event.y - 1
        if event.y and at == self._at:
            self.action_choose()
        elif event.y and at < len(self._rows):
            self.select(at)

    def action_move(self, rows: int) -> None:
        self.select(self._at + rows)

    def action_page(self, pages: int) -> None:
        self.select(self._at + pages * max(1, self.size.height - 2))

    def action_choose(self) -> None:
        if self._rows:
            self.post_message(self.Chosen())

    def _keep_in_sight(self) -> None:
        room, top = max(1, self.size.height - 1), self.scroll_offset.y
        wanted = min(max(top, self._at - room + 1), self._at)
        if wanted != top:
            self.scroll_to(y=wanted, animate=False, immediate=True)

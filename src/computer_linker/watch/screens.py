"""Screens above the view: a text to read, a question with keys for answers, and a request with all of its text."""

from collections.abc import Iterable
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.events import Key
from textual.screen import ModalScreen
from textual.widgets import Static

_READ_KEYS: list[BindingType] = [
    Binding("escape,q,enter", "dismiss", "Close"), Binding("down,j", "scroll(1)"), Binding("up,k", "scroll(-1)"),
    Binding("pagedown,space", "page(1)"), Binding("pageup", "page(-1)"),
]  # fmt: skip


class ReadScreen(ModalScreen[None]):
    """Lines to read and scroll."""

    BINDINGS: ClassVar[list[BindingType]] = _READ_KEYS

    def __init__(self, title: str, lines: Iterable[Text]) -> None:
        super().__init__()
        self._title, self._lines = title, list(lines)

    def compose(self) -> ComposeResult:
        yield Static(f"{self._title}   (Esc closes)", classes="title", markup=False)
        with VerticalScroll(id="text"):
            yield Static(Text("\n").join(self._lines))

    def on_mount(self) -> None:
        self.query_one("#text").focus()

    def action_scroll(self, lines: int) -> None:
        self.query_one("#text").scroll_relative(y=lines, animate=False)

    def action_page(self, pages: int) -> None:
        text = self.query_one("#text", VerticalScroll)
        text.scroll_relative(y=pages * max(1, text.size.height - 1), animate=False)


class QuestionScreen(ModalScreen[str | None]):
    """A question; the answer is the key that was pressed, None for any other."""

    def __init__(self, question: str, answers: dict[str, str]) -> None:
        super().__init__()
        self._question, self._answers = question, answers

    def compose(self) -> ComposeResult:
        keys = "   ".join(f"{key} {meaning}" for key, meaning in self._answers.items())
        yield Static(Text(f"{self._question}\n\n{keys}   Esc nothing"), id="question")

    def on_key(self, event: Key) -> None:
        event.stop()
        self.dismiss(event.key if event.key in self._answers else None)


class RequestScreen(ModalScreen[str | None]):
    """A waiting request with all of its text. It can be approved only once its end was on the screen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "answer('')"), Binding("d,n", "answer('d')"), Binding("a,y", "approve('a')"),
        Binding("s", "approve('s')"), Binding("m", "approve('m')"), Binding("down,j", "scroll(1)"), Binding("up,k", "scroll(-1)"),
        Binding("pagedown,space", "page(1)"), Binding("pageup", "page(-1)"),
    ]  # fmt: skip

    def __init__(self, lines: Iterable[Text]) -> None:
        super().__init__()
        self._lines = list(lines)
        self._has_seen_end = False

    def compose(self) -> ComposeResult:
        yield Static("", id="asked", classes="title")
        with VerticalScroll(id="text"):
            yield Static(Text("\n").join(self._lines))

    def on_mount(self) -> None:
        text = self.query_one("#text", VerticalScroll)
        text.focus()
        self.call_after_refresh(self._look)

    def _look(self) -> None:
        text = self.query_one("#text", VerticalScroll)
        self._has_seen_end |= text.scroll_offset.y >= text.max_scroll_y
        keys = "a once  m same again  s this shape  " if self._has_seen_end else "Space shows the rest  "
        self.query_one("#asked", Static).update(Text(f"{keys}d deny  Esc later"))

    def action_scroll(self, lines: int) -> None:
        self.query_one("#text").scroll_relative(y=lines, animate=False, on_complete=self._look)
        self.call_after_refresh(self._look)

    def action_page(self, pages: int) -> None:
        self.action_scroll(pages * max(1, self.query_one("#text").size.height - 1))

    def action_approve(self, key: str) -> None:
        if self._has_seen_end:
            self.dismiss(key)
        else:
            self.app.bell()

    def action_answer(self, key: str) -> None:
        self.dismiss(key or None)

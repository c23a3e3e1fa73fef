"""Screens above the view: a text to read, a question with keys for answers, and a request with all of its text."""

from collections.abc import Callable, Iterable
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

    def __init__(self, lines: Iterable[Text], seconds_left: Callable[[], int]) -> None:
        super().__init__()
        self._lines, self._seconds_left = list(lines), seconds_left
        self._has_seen_end = False

    def compose(self) -> ComposeResult:
        yield Static("", id="asked", classes="title")
        with VerticalScroll(id="text"):
            yield Static(Text("\n").join(self._lines))

    def on_mount(self) -> None:
        text = self.query_one("#text", VerticalScroll)
        text.focus()
        self.call_after_refresh(self._look)
        self.set_interval(1, self._count)

    def _count(self) -> None:
        """Count down; a request whose time is over cannot be answered any more."""
        if self._seconds_left():
            self._look()
        else:
            self.dismiss(None)

    def _look(self) -> None:
        text = self.query_one("#text", VerticalScroll)
        self._has_seen_end |= text.scroll_offset.y >= text.max_scroll_y
        keys = "a once  m same again  s this shape  " if self._has_seen_end else "Space shows the rest  "
        self.query_one("#asked", Static).update(Text(f"{self._seconds_left()} s left   {keys}d deny  Esc later"))

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


# The help of the view.

LINES = (
    "1 calls      each call of a client as it happens, and your own acts",
    "2 clients    who was heard of, and by how many connections",
    "3 running    processes and agents that clients started",
    "4 listening  what accepts connections, for whom, and what closes it",
    "Tab          the next view",
    "",
    "A request that waits for you stands on top. While this program runs, calls wait for your answer.",
    "a  approve it, this once          d  deny it",
    "s  approve its shape              m  approve this exact request again",
    "v  read all of it                 n  show the next one",
    "s and m show what they cover first. What is longer than the screen is approved only once you have seen its end.",
    "",
    "Enter  everything of the selected row",
    "x  stop the selected call, process or agent",
    "u  take back what the selected call changed",
    "p  pause every client, or let them go on",
    "o  open the file of the selected call, the address, or the picture of the request",
    "/  show only rows that have these words; Esc shows all again",
    "b  older calls                    t  back to a time, such as 2h or 2026-11-01",
    "l  the newest calls again         q  quit",
)


# The style sheet of the view.

STYLE = """
Screen { layout: vertical; }
#head { height: 1; background: $primary; color: $text; }
#views, #note { height: 1; }
#row { height: auto; max-height: 2; color: $text-muted; }
#keys { height: auto; max-height: 3; color: $text-muted; }
#table { height: 1fr; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0; }
#filter { display: none; height: 1; border: none; padding: 0; }
#requests { height: auto; max-height: 70%; border: solid $warning; padding: 0; display: none; scrollbar-size-vertical: 1; }
.title { height: 1; text-style: bold; color: $warning; }
#text { height: 1fr; }
QuestionScreen { align: center middle; }
#question { width: 76; height: auto; max-height: 20; border: heavy $warning; padding: 1 2; background: $surface; }
"""

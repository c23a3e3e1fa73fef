"""The owner's acts on keys: answer a request, stop, undo, pause, and the details of a row."""

from typing import TYPE_CHECKING, Any

from rich.text import Text

from computer_linker.model.times import local
from computer_linker.watch.requests import Request, RequestPanel, seconds_until
from computer_linker.watch.screens import ReadScreen, RequestScreen
from computer_linker.watch.tables import printable, process_name

if TYPE_CHECKING:
    from computer_linker.watch.app import WatchApp

_STANDING = {"s": ("shape", "Requests of this shape"), "m": ("same", "This exact request again")}


class Acts:
    """Each act asks first where it reaches further than one request, and shows what came of it."""

    def __init__(self, app: "WatchApp", panel: RequestPanel) -> None:
        self._app, self._panel = app, panel

    def request(self, key: str) -> None:
        """Answer the request on the screen: a once, m the same again, s its shape, d deny, v read all of it, n the next one."""
        request = self._panel.current
        if request is None:
            self._app.say("nothing waits for your answer")
        elif key == "n":
            self._panel.next()
        elif not self._panel.is_settled:
            # It came up a moment ago: the key was meant for what was there before.
            self._app.say("another request came up: look at it, then press the key again")
        elif key == "d":
            self._deny(request)
        elif key == "v" or not self._panel.is_whole:
            lines = request.lines(self._panel.form, max(40, self._app.size.width - 2))
            screen = RequestScreen([*lines, *request.offers()], lambda: seconds_until(request.until))
            self._app.push_screen(screen, lambda answer: self._answered(request, answer))
        else:
            self._answered(request, key)

    def _answered(self, request: Request, key: str | None) -> None:
        if key == "a":
            self._allow(request, {}, "Allowed once.")
        elif key == "d":
            self._deny(request)
        elif key in _STANDING:
            self._allow_more(request, *_STANDING[key])

    def _allow_more(self, request: Request, answer: str, meaning: str) -> None:
        choice = request.choice(answer)
        if choice is None:
            self._app.say(f"this request can be approved once only: {meaning.lower()} is not offered for it")
            return
        past = ""
        if choice.get("matched") is not None:
            such = "\n".join(f"  {example}" for example in choice.get("examples", []))
            past = f"\nIn the last 30 days it would have covered {choice['matched']}{':' if such else '.'}\n{such}"
        question = printable_lines(f"{meaning}, without being asked: {choice['covers']}.{past}")
        answers = {"y": "for an hour", "r": "until revoked"}

        def then(key: str | None) -> None:
            if key is not None:
                self._allow(request, {answer: True, "untilRevoked": key == "r"}, f"Allowed: {choice['covers']}.")

        self._app.ask(question, answers, then)

    def _allow(self, request: Request, extent: dict[str, Any], done: str) -> None:
        self._panel.drop(request.id)
        self._app.act("approvals.allow", lambda _: done, asked=request.id, **extent)

    def _deny(self, request: Request) -> None:
        self._panel.drop(request.id)
        self._app.act("approvals.deny", lambda result: f"Denied {result['op']} in {result['scope']}.", asked=request.id)

    def stop(self) -> None:
        """Stop the selected process, agent or running call."""
        identifier = self._app.selected
        call = self._app.call_of(identifier)
        process = self._app.facts_of(identifier) if self._app.view == "running" else None
        if process is not None:
            question = f"Stop this and everything it started?\n{process_name(process)}\n{identifier}"
            self._stop(question, "process.stop", {"process": identifier})
        elif self._app.view == "calls" and call is not None and call.is_running:
            self._stop(f"Stop this call of {call.row.who}?\n{call.row.what}", "call.stop", {"operation": identifier})
        else:
            self._app.say("select a running call (1), or a process or agent (3), to stop it")

    def _stop(self, question: str, operation: str, given: dict[str, Any]) -> None:
        def then(key: str | None) -> None:
            if key == "y":
                self._app.act(operation, lambda _: "Stopped.", **given)

        self._app.ask(printable_lines(question), {"y": "stop it"}, then)

    def undo(self) -> None:
        """Take back what the selected call changed."""
        call = self._app.call_of(self._app.selected) if self._app.view == "calls" else None
        if call is None or not call.event["ok"]:
            self._app.say("select a call that changed something, to take it back")
            return

        def then(key: str | None) -> None:
            if key == "y":
                self._app.act("undo", _undone, operation=call.id)

        self._app.ask(printable_lines(f"Take back what {call.row.who} did?\n{call.row.what}"), {"y": "undo"}, then)

    def pause(self, *, is_paused: bool) -> None:
        """Pause every client, or let them go on."""

        def then(key: str | None) -> None:
            if key == "y" and is_paused:
                self._app.act("unpause", lambda _: "Clients may go on.")
            elif key is not None:
                self._app.act("pause", _paused, stop=key == "k")

        if is_paused:
            self._app.ask("Every client is paused. Let them go on?", {"y": "go on"}, then)
        else:
            answers = {"y": "pause", "k": "pause and stop what runs"}
            self._app.ask("Refuse every client until you end the pause?", answers, then)

    def details(self) -> None:
        """Everything of the selected row."""
        call = self._app.call_of(self._app.selected) if self._app.view == "calls" else None
        if call is not None:
            self._app.look("history.show", self._show, operation=call.id)
        elif (facts := self._app.facts_of(self._app.selected)) is not None:
            self._show(facts)

    def _show(self, facts: dict[str, Any]) -> None:
        # What a person asks first comes first; the record with all its fields is the end.
        ordered = {name: value for name, value in facts.items() if name != "event"} | {"record": facts.get("event")}
        self._app.push_screen(ReadScreen("Details", facts_lines(ordered)))


def facts_lines(facts: dict[str, Any], indent: str = "") -> list[Text]:
    """Nested facts as lines, each with its name."""
    lines: list[Text] = []
    for name, value in facts.items():
        if value in (None, "", [], {}):
            continue
        match value:
            case dict():
                lines += [Text(f"{indent}{name}", style="bold"), *facts_lines(value, indent + "  ")]
            case list():
                lines.append(Text(f"{indent}{name}", style="bold"))
                for one in value:
                    lines += facts_lines(one, indent + "  ") if isinstance(one, dict) else [_line(f"{indent}  {one}")]
            case _:
                lines += [_line(f"{indent}{name}: {part}") for part in str(value).splitlines()[:200]]
    return lines


def _line(text: str) -> Text:
    colour = {"+": "green", "-": "red", "@": "cyan"}.get(text.strip()[:1], "")
    return Text(printable(text), style=colour)


def printable_lines(text: str) -> str:
    return "\n".join(printable(line) for line in text.split("\n"))


def _undone(result: dict[str, Any]) -> str:
    return f"Took it back: {', '.join(file['path'] for file in result['files']) or 'the config'}."


def _paused(result: dict[str, Any]) -> str:
    stopped = f" Stopped {result['stopped']} of theirs." if result["stopped"] else ""
    return (
        f"Every client is paused until {local(result['until']) if result['until'] else 'you press p again'}.{stopped}"
    )

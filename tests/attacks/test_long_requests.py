"""A yes is to every byte: a long request is shown whole, or the place that cannot show it cannot allow it (B9)."""

import json
import os
import pty
import random
import re
import shutil
import subprocess
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from computer_linker.approvals.approvals import Approvals
from computer_linker.approvals.request import DIALOG_CHARACTERS
from computer_linker.approvals.terminal import TerminalApprovals
from computer_linker.policy.digest import canonical_request, digest_of
from computer_linker.policy.visible_text import preview
from computer_linker.transports.http.approval_html import list_page
from support.notice_area import NoticeArea
from support.road import LOCAL, Road, folder_scope
from support.service import (
    META,
    PROGRAM,
    TOKEN,
    Service,
    environment,
    message_of,
    modern_headers,
    rpc,
    serving,
    wait_for,
)

pytestmark = pytest.mark.anyio

HIDDEN = "import os; os.system('touch hit')"
CODE = "#" + "a" * 2100 + "\n" + HIDDEN + "\n#" + "b" * 700
"""The middle of it is what runs."""
LONG = {"scope": "app", "op": "command.run", "target": ".", "input": {"command": ["python3", "-c", CODE]}}


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    scopes = [folder_scope(tmp_path / "root", confirm="all")]
    with serving(tmp_path, token=TOKEN, scopes=scopes, approvalPage=True) as running:
        yield running


def test_the_preview_has_every_character_of_requests_of_any_length() -> None:
    seed = 20261116
    chance = random.Random(seed)
    for _ in range(300):
        text = "".join(chance.choice("ab\u202e\u200b\x1b\u2066é日\n\t") for _ in range(chance.choice([10, 2600, 9000])))
        request = canonical_request("app", "command.run", ".", {"command": text}, None)
        shown = preview(request, digest_of(request))
        assert "not shown" not in shown, seed
        *lines, _ = shown.split("\n")
        undone = re.sub(r"\\(x..|u....|U........)", lambda m: chr(int(m[1][1:], 16)), "".join(lines))
        assert json.loads(undone, strict=False)["input"]["command"] == text, seed


class Terminal:
    """`computer-linker approvals` on a terminal of 24 lines; `say` answers its prompts."""

    def __init__(self, service: Service) -> None:
        self._parent, child = pty.openpty()
        self._live = subprocess.Popen(
            [*PROGRAM, "approvals"],
            env={**environment(service.home), "COLUMNS": "80", "LINES": "24", "NO_COLOR": "1"},
            stdin=child, stdout=child, stderr=child,
        )  # fmt: skip
        os.close(child)
        self.seen = b""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        wait_for(lambda: b"Waiting for requests" in self.seen)

    def _read(self) -> None:
        try:
            while data := os.read(self._parent, 65536):
                self.seen += data
        except OSError:
            return

    def until(self, text: bytes, times: int = 1) -> None:
        wait_for(lambda: self.seen.count(text) >= times)

    def until_page_or_end(self, pages: int) -> None:
        wait_for(lambda: b"Allow?" in self.seen or len(re.findall(rb"more lines?\.", self.seen)) >= pages)

    def say(self, text: str) -> None:
        os.write(self._parent, f"{text}\n".encode())

    @property
    def request(self) -> str:
        """What was shown of the request, the lines put together again."""
        plain = re.sub(r"\d+ more lines?\.[^\n]*\n", "", self.seen.decode().replace("\r\n", "\n"))
        return joined(plain)

    def close(self) -> None:
        self._live.kill()
        self._live.wait()
        self._reader.join(10)
        os.close(self._parent)


def joined(shown: str) -> str:
    """The lines put together again: a line that goes on is indented further."""
    return "".join(line[4:] if line.startswith("    ") else line.removeprefix("  ") for line in shown.split("\n"))


@pytest.fixture
def terminal(service: Service) -> Iterator[Terminal]:
    opened = Terminal(service)
    yield opened
    opened.close()


def asking(service: Service, answers: list[Any]) -> threading.Thread:
    def call() -> None:
        while True:
            link = service.http()
            answer = link.control("computer_operation", **LONG)
            link.close()
            if answer["ok"] or "approveWith" not in answer["error"]["details"]:
                answers.append(answer)
                return

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    return thread


def test_a_terminal_offers_a_yes_only_after_the_end_was_shown(service: Service, terminal: Terminal) -> None:
    answers: list[Any] = []
    call = asking(service, answers)
    terminal.until(b"more lines.")
    assert b"Allow?" not in terminal.seen and HIDDEN not in terminal.request
    terminal.say("y")
    for pages in range(2, 20):
        terminal.until_page_or_end(pages)
        if b"Allow?" in terminal.seen:
            break
        terminal.say("")
    assert HIDDEN in terminal.request and "b" * 700 in terminal.request
    assert not (service.root / "hit").exists() and not answers, "the y on the way was none"
    terminal.say("y")
    call.join(60)
    assert answers[0]["ok"] and (service.root / "hit").exists()


@pytest.mark.parametrize(("key", "code"), [("n", "denied_by_person"), ("!", None)])
def test_on_the_way_it_can_be_refused_or_answered_unread_in_so_many_words(
    service: Service, terminal: Terminal, key: str, code: str | None
) -> None:
    answers: list[Any] = []
    call = asking(service, answers)
    terminal.until(b"more lines.")
    terminal.say(key)
    if code is None:
        terminal.until(b"You have not seen")
        terminal.until(b"Allow?")
        terminal.say("y")
    call.join(60)
    assert answers[0].get("error", {}).get("code") == code
    assert (service.root / "hit").exists() is (code is None)


def test_the_list_of_the_command_line_shows_all_of_it(service: Service) -> None:
    link = service.http()
    link.control("computer_operation", **LONG)
    link.close()
    run = [*PROGRAM, "approvals", "list"]
    told = subprocess.run(run, env=environment(service.home), capture_output=True, text=True, timeout=240).stdout
    assert HIDDEN in joined(told)


def dialog(service: Service, **more: Any) -> dict[str, Any]:
    meta = {**META, "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
    params = {"name": "computer_operation", "arguments": LONG, "_meta": meta, **more}
    link = service.http()
    headers = modern_headers("tools/call", {"name": "computer_operation"})
    status, body = link.send("POST", "/mcp", rpc(1, "tools/call", params), headers)
    link.close()
    assert status == 200, body
    result: dict[str, Any] = message_of(body)["result"]
    return result


@pytest.mark.parametrize("decision", ["Allow once", "Do not allow"])
def test_a_clients_dialog_can_refuse_a_long_request_and_not_allow_it(service: Service, decision: str) -> None:
    asked = dialog(service)
    form = asked["inputRequests"]["confirm"]["params"]
    assert form["requestedSchema"]["properties"]["decision"]["enum"] == ["Do not allow"]
    assert "more characters, which are not shown here" in form["message"]
    answer = {"confirm": {"action": "accept", "content": {"decision": decision}}}
    again = dialog(service, requestState=asked["requestState"], inputResponses=answer)
    told = json.loads(again["content"][0]["text"])
    assert told["error"]["code"] == ("denied_by_person" if decision == "Do not allow" else "confirm_required")
    assert not (service.root / "hit").exists()


@pytest.fixture
async def road(tmp_path: Path) -> AsyncIterator[Road]:
    async with Road.open(tmp_path, [folder_scope(tmp_path / "root", confirm="all")]) as opened:
        yield opened


@pytest.mark.parametrize("length", [5_000, 250_000])
async def test_the_page_shows_all_of_a_long_request_before_its_buttons(road: Road, length: int) -> None:
    text = "x" * (length // 2) + "MIDDLE" + "y" * (length // 2)
    await road.call("file.write", "a.txt", input={"content": text})
    page = list_page([(asked, []) for asked in road.app.services.use(Approvals).waiting()], "csrf", "box")
    assert "x" * (length // 2) + "MIDDLE" + "y" * (length // 2) in page
    assert page.index("MIDDLE") < page.index('value="allow"')


async def test_the_page_offers_no_yes_for_what_is_too_long_for_it(road: Road) -> None:
    await road.call("file.write", "a.txt", input={"content": "x" * 400_000})
    page = list_page([(asked, []) for asked in road.app.services.use(Approvals).waiting()], "csrf", "box")
    assert 'value="allow"' not in page and 'value="shape"' not in page and 'value="deny"' in page
    assert "too long for this page" in page


def test_the_page_takes_no_yes_for_what_is_too_long_for_it(service: Service) -> None:
    """A form sent by hand, with everything but the button that was not there."""
    link = service.http()
    asked = link.control(
        "computer_operation", scope="app", op="file.write", target="a.txt", input={"content": "x" * 400_000}
    )["error"]["details"]["approvalId"]
    run = [*PROGRAM, "approvals", "phone", "--json"]
    made = subprocess.run(run, env=environment(service.home), capture_output=True, text=True, timeout=240)
    assert link.send("GET", "/approve/" + json.loads(made.stdout)["url"].rpartition("/")[2])[0] == 303
    cookie = link.headers["set-cookie"].partition(";")[0]
    page = link.send("GET", "/approve", headers={"cookie": cookie})[1].decode()
    csrf = re.search(r'name="csrf" value="([^"]+)"', page)
    assert csrf is not None
    form = f"csrf={csrf[1]}&id={asked}&answer=allow".encode()
    headers = {"cookie": cookie, "content-type": "application/x-www-form-urlencoded"}
    headers["origin"] = f"http://127.0.0.1:{service.port}"
    assert link.send("POST", "/approve", form, headers)[0] == 400
    again = link.control(
        "computer_operation", scope="app", op="file.write", target="a.txt", input={"content": "x" * 400_000}
    )
    link.close()
    assert again["error"]["code"] == "no_answer" and not (service.root / "a.txt").exists()


@pytest.mark.skipif(shutil.which("dbus-daemon") is None, reason="not installed: dbus-daemon")
@pytest.mark.parametrize("button", ["allow", "deny"])
async def test_a_notice_of_a_long_request_has_no_button_that_allows(tmp_path: Path, button: str) -> None:
    from computer_linker.computer.local.linux.notifications import BusNotifications
    from computer_linker.computer.local.probe import this_computer
    from support.desktop import _start_bus, stop

    process, address = _start_bus({"PATH": os.environ["PATH"]})
    computer = this_computer({})
    computer.provide("notifications", BusNotifications({"DBUS_SESSION_BUS_ADDRESS": address}), backend="session bus")
    answers: list[dict[str, Any]] = []
    try:
        async with Road.open(tmp_path, [folder_scope(tmp_path / "root", confirm="all")], computer) as road:
            road.app.services.use(TerminalApprovals)

            async def write() -> None:
                answers.append(await road.call("file.write", "a.txt", input={"content": "x" * 2000}))

            with anyio.fail_after(60):
                async with NoticeArea.open(address) as area, anyio.create_task_group() as group:
                    group.start_soon(write)
                    notice = await area.next()
                    assert notice.actions == ["deny", "Do not allow"] and "not shown here" in notice.body
                    assert road.app.dispatcher.queues.is_idle("desktop", 0), "nothing is held up for it"
                    area.press(notice.number, button)
                    if button == "allow":
                        area.press(notice.number, "deny")
            expected = "denied_by_person" if button == "deny" else "no_answer"
            assert answers[0]["error"]["code"] == expected and not (road.root / "a.txt").exists()
    finally:
        stop(process)


async def test_what_names_itself_with_escapes_is_written_out_everywhere(road: Road) -> None:
    from computer_linker.approvals.terminal import shown
    from computer_linker.transports.mcp.dialog import question

    evil = "\x1b[2J\u202e\u200b"
    await road.call("file.mkdir", f"a{evil}b")
    [asked] = road.app.services.use(Approvals).waiting()
    asked.principal = f"oauth:{evil}"
    told = json.dumps(shown(asked).to_wire(), ensure_ascii=False) + json.dumps(question(asked), ensure_ascii=False)
    for char in evil:
        assert char not in ("\x1b", "\u202e", "\u200b") or char not in told
    assert len(asked.preview) <= DIALOG_CHARACTERS and LOCAL.client is not None

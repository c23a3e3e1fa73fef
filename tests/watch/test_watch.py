"""`computer-linker watch` in a real terminal (tmux, 80 by 24) with a real service and real clients."""

import contextlib
import json
import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from computer_linker.client import Answer, Client
from computer_linker.client.socket_client import ask_service
from support.road import folder_scope
from support.service import PROGRAM, Service, environment, serving, wait_for
from support.tmux import Terminal, program, terminal

pytestmark = pytest.mark.skipif(program() is None, reason="not installed: tmux")
CLIENT = "computer-linker-python"
PARENTS = {"createParents": True}


class Watched:
    """A service, a terminal that watches it, and clients in threads."""

    def __init__(self, service: Service, shown: Terminal) -> None:
        self.service, self.terminal, self.pool = service, shown, ThreadPoolExecutor(8)

    def call(self, op: str, target: str, scope: str = "app", **parts: Any) -> "Future[Answer]":
        """A call of another client, which may wait for the owner."""

        def run() -> Answer:
            with Client.over_socket(home=self.service.home) as linker:
                return linker.scope(scope).call(op, target, **parts)

        return self.pool.submit(run)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("watched")
    root, asked = folder / "root", folder / "asked"
    asked.mkdir()
    free = folder_scope(root)
    free["policy"] = {"allowedCommands": ["sleep *"]}
    careful = {**folder_scope(asked), "id": "asked", "policy": {"confirm": "all"}}
    with serving(folder, token=None, scopes=[free, careful]) as started:
        yield started


@pytest.fixture(scope="module")
def shown(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    with terminal(tmp_path_factory.mktemp("t"), [*PROGRAM, "watch"], environment(service.home)) as started:
        started.until("Computer Linker  live", "1 calls", "q quit")
        yield started


@pytest.fixture
def watched(service: Service, shown: Terminal) -> Iterator[Watched]:
    """The one view of this module, as it is at its start."""
    shown.resize(80, 24)
    shown.press("l")
    shown.until("[1 calls]", "q quit", without="filter:")
    one = Watched(service, shown)
    yield one
    one.pool.shutdown(wait=False, cancel_futures=True)
    if "PAUSED" in shown.screen:
        ask_service(service.home, {"owner": "unpause", "input": {}})


def test_calls_come_up_as_they_happen_and_fit_eighty_by_twenty_four(watched: Watched) -> None:
    (watched.service.root / "notes.txt").write_text("hello\n")
    assert watched.call("file.read", "notes.txt").result(30).op == "file.read"
    screen = watched.terminal.until("notes.txt", "done")
    lines = screen.splitlines()
    assert len(lines) <= 24 and all(len(line) <= 80 for line in lines)
    assert CLIENT[:8] in next(line for line in lines if "notes.txt" in line)
    watched.terminal.press("2")
    watched.terminal.until("[2 clients]", CLIENT[:8], "local:")
    watched.terminal.resize(60, 15)
    assert all(len(line) <= 60 for line in watched.terminal.until("[2 clients]").splitlines())


def test_a_wide_screen_cuts_nothing_that_has_room_and_counts_clients_not_connections(watched: Watched) -> None:
    """Found: a column of fixed width was cut beside an empty one, and two connections of one client were two clients."""
    for _ in range(2):
        watched.call("file.list", ".").result(30)
    watched.terminal.resize(120, 40)
    watched.terminal.press("4")
    screen = watched.terminal.until("[4 listening]", "service.sock", "your own programs, which no token is asked of")
    assert all(len(line) <= 120 for line in screen.splitlines())
    watched.terminal.press("2")
    screen = watched.terminal.until("[2 clients]", "1 client seen", "links")
    assert sum(CLIENT[:8] in line for line in screen.splitlines()) == 1, screen


def test_a_waiting_request_shows_its_difference_and_a_key_approves_or_denies_it(watched: Watched) -> None:
    folder = Path(watched.service.root.parent / "asked")
    wanted = watched.call("file.write", "new.txt", scope="asked", input={"content": "first\nsecond\n"})
    watched.terminal.until("WAITS FOR YOU", "file.write in asked", "+first", "+second")
    assert not (folder / "new.txt").exists()
    _answer(watched, "a")
    assert wanted.result(30).effect == "confirmed"
    assert (folder / "new.txt").read_text() == "first\nsecond\n"
    watched.terminal.until("done", without="WAITS FOR YOU")
    refused = watched.call("file.write", "other.txt", scope="asked", input={"content": "x"})
    watched.terminal.until("WAITS FOR YOU", "other.txt")
    _answer(watched, "d")
    assert refused.exception(30) is not None
    assert not (folder / "other.txt").exists()
    watched.terminal.until("Denied file.write", without="WAITS FOR YOU")


def _answer(watched: Watched, key: str) -> None:
    """Press a key until the request is gone: at first it may be one that has just come up."""

    def answered() -> bool:
        if "WAITS FOR YOU" not in watched.terminal.screen:
            return True
        watched.terminal.press(key)
        return False

    wait_for(answered, step_s=0.5)


def test_a_key_pressed_as_a_request_comes_up_approves_nothing(watched: Watched) -> None:
    """A person who presses a for one request must not approve the next one, which took its place."""
    folder = Path(watched.service.root.parent / "asked")
    over = threading.Event()

    def impatient() -> None:
        while not over.is_set():
            watched.terminal.press("a")
            if "another request came up" in watched.terminal.screen:
                return

    pressing = threading.Thread(target=impatient)
    pressing.start()
    asked = watched.call("file.write", "sudden.txt", scope="asked", input={"content": "x"})
    pressing.join(60)
    over.set()
    assert not (folder / "sudden.txt").exists()
    watched.terminal.until("WAITS FOR YOU", "sudden.txt")
    _answer(watched, "d")
    assert asked.exception(30) is not None and not (folder / "sudden.txt").exists()


def test_a_request_longer_than_the_screen_is_approved_only_after_its_end_was_seen(watched: Watched) -> None:
    folder = Path(watched.service.root.parent / "asked")
    content = "".join(f"line {number}\n" for number in range(60))
    asked = watched.call("file.write", "long.txt", scope="asked", input={"content": content})
    watched.terminal.until("WAITS FOR YOU", "long.txt")
    watched.terminal.press_until("v", "Space shows the rest")
    left = _seconds_left(watched)
    wait_for(lambda: 0 < _seconds_left(watched) < left)
    watched.terminal.press("a", "a")
    watched.terminal.until("Space shows the rest")
    assert not asked.done() and not (folder / "long.txt").exists()
    watched.terminal.press_until("Space", "a once", within_s=0.5)
    watched.terminal.press("a")
    assert asked.result(30).effect == "confirmed" and (folder / "long.txt").read_text() == content


def _seconds_left(watched: Watched) -> int:
    """The countdown on the screen."""
    found = re.search(r"(\d+) s left", watched.terminal.until(" s left"))
    return int(found[1]) if found else 0


def test_a_shape_is_approved_once_its_extent_was_shown_and_covers_no_more(watched: Watched) -> None:
    folder = Path(watched.service.root.parent / "asked")
    first = watched.call("file.write", "notes/one.txt", scope="asked", input={"content": "1"}, options=PARENTS)
    watched.terminal.until("WAITS FOR YOU", "notes/one.txt")
    watched.terminal.press_until("s", "without being asked")
    watched.terminal.until("every file.write", "y for an hour")
    assert not first.done() and not (folder / "notes").exists()
    watched.terminal.press("y")
    assert first.result(30).effect == "confirmed"
    watched.terminal.until("Allowed: every file.write", without="WAITS FOR YOU")
    again = watched.call("file.write", "notes/one.txt", scope="asked", input={"content": "2"}, options=PARENTS)
    assert again.result(30).effect == "confirmed" and (folder / "notes/one.txt").read_text() == "2"
    other = watched.call("file.delete", "notes/one.txt", scope="asked")
    watched.terminal.until("WAITS FOR YOU", "file.delete in asked")
    _answer(watched, "d")
    assert other.exception(30) is not None and (folder / "notes/one.txt").exists()


def test_what_listens_and_everything_of_a_row_are_shown(watched: Watched) -> None:
    path = watched.service.root / "seen.txt"
    path.write_text("before\n")
    watched.call("file.write", "seen.txt", input={"content": "after\n"}).result(30)
    watched.terminal.press("4")
    watched.terminal.until("[4 listening]", f"127.0.0.1:{watched.service.port}", "computer-linker stop")
    watched.terminal.press("1", "/", "seen", "Enter")
    watched.terminal.until("filter: seen", "wrote seen.txt")
    watched.terminal.press("Enter")
    watched.terminal.until("Details", "what: wrote seen.txt", "+after", "op: file.write")
    watched.terminal.press("Escape")
    watched.terminal.until("filter: seen", without="Details")


def test_undo_takes_the_selected_call_back_once_it_is_confirmed(watched: Watched) -> None:
    path = watched.service.root / "kept.txt"
    path.write_text("before\n")
    watched.call("file.write", "kept.txt", input={"content": "after\n"}).result(30)
    watched.terminal.press("/", "kept", "Enter")
    watched.terminal.until("filter: kept", "kept.txt", "done")
    watched.terminal.press("u")
    watched.terminal.until("Take back what", "kept.txt", "y undo")
    watched.terminal.press("n")
    watched.terminal.until("q quit", without="Take back what")
    assert path.read_text() == "after\n"
    watched.terminal.press("u")
    watched.terminal.until("y undo")
    watched.terminal.press("y")
    watched.terminal.until("Took it back: kept.txt")
    assert path.read_text() == "before\n"


def test_undo_that_gives_clients_more_asks_once_more_and_names_it(watched: Watched) -> None:
    folder = watched.service.root.parent
    denied = subprocess.run(
        [*PROGRAM, "scope", "edit", "asked", "--deny", "fs:write"], env=environment(watched.service.home),
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert denied.returncode == 0, denied.stderr
    watched.terminal.press("/", "fs:write", "Enter")
    watched.terminal.until("filter: fs:write", "changed the scope")
    watched.terminal.press("u")
    watched.terminal.until("Take back what", "y undo")
    watched.terminal.press("y")
    watched.terminal.until("gives clients more than now", "fs:write", "y yes, do it")
    watched.terminal.press("n")
    watched.terminal.until("q quit", without="gives clients more")
    config = watched.service.home / "config.json"
    assert "fs:write" not in _rights(config, "asked"), folder
    watched.terminal.press("u")
    watched.terminal.until("y undo")
    watched.terminal.press("y")
    watched.terminal.until("y yes, do it")
    watched.terminal.press("y")
    watched.terminal.until("Took it back: the config")
    assert "fs:write" in _rights(config, "asked")


def _rights(config: Path, scope: str) -> list[str]:
    (found,) = [one for one in json.loads(config.read_text())["scopes"] if one["id"] == scope]
    return list(found["capabilities"])


def test_a_running_call_and_a_process_are_stopped_by_a_key(watched: Watched) -> None:
    running = watched.call("command.run", ".", input={"command": ["sleep", "600"]}, options={"timeoutSeconds": 600})
    watched.terminal.press("/", "sleep", "Enter")
    watched.terminal.until("filter: sleep", "sleep 600", "running ")
    watched.terminal.press("x")
    watched.terminal.until("Stop this call", "y stop it")
    watched.terminal.press("y")
    error = running.exception(30)
    assert error is not None and "aborted" in repr(error) + str(getattr(error, "code", ""))
    watched.terminal.until("Stopped.")
    assert _processes("sleep", "600") == []
    watched.terminal.press("l")
    watched.terminal.until("stopped the call ")
    watched.call("command.start", ".", input={"command": ["sleep", "601"]}).result(30)
    watched.terminal.press("3")
    watched.terminal.until("[3 running]", "sleep 601", "running")
    watched.terminal.press("x")
    asked = watched.terminal.until("and everything it started?")
    assert any("┃" in line and "sleep 601" in line for line in asked.splitlines()), "the question names the command"
    watched.terminal.press("y")
    watched.terminal.until("Stopped.", without="and everything it started?")
    assert _processes("sleep", "601") == []


def _processes(*words: str) -> list[int]:
    """The processes with exactly this command line."""
    wanted = "\0".join((*words, "")).encode()
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if path.read_bytes() == wanted:
                found.append(int(path.parent.name))
    return found


def test_a_call_that_does_not_run_is_not_stopped_and_the_attempt_is_recorded(service: Service) -> None:
    answer = ask_service(service.home, {"owner": "call.stop", "input": {"operation": "01KA00000000000000000000AA"}})
    assert answer is not None and answer["error"]["code"] == "not_found"
    listed = subprocess.run(
        [*PROGRAM, "history", "--json", "--query", "op:call.stop"], env=environment(service.home), capture_output=True,
        text=True, timeout=240, check=True,
    )  # fmt: skip
    assert [event["ok"] for event in json.loads(listed.stdout)["events"]][:1] == [False]


def test_pause_refuses_every_client_and_is_ended_by_the_same_key(watched: Watched) -> None:
    (watched.service.root / "notes.txt").write_text("hello\n")
    watched.terminal.press("p")
    watched.terminal.until("Refuse every client")
    watched.terminal.press("y")
    watched.terminal.until("PAUSED until")
    refused = watched.call("file.read", "notes.txt").exception(30)
    assert getattr(refused, "code", None) == "paused"
    watched.terminal.press("p")
    watched.terminal.until("Let them go on?")
    watched.terminal.press("y")
    watched.terminal.until("Clients may go on.", without="PAUSED until")
    assert watched.call("file.read", "notes.txt").result(30).op == "file.read"
    ask_service(watched.service.home, {"owner": "pause", "input": {"lasting": "2s"}})
    watched.terminal.until("PAUSED until 20")
    watched.terminal.until("Computer Linker  live", without="paused until")


def test_at_eighty_columns_there_is_room_for_what_and_no_key_is_split(watched: Watched) -> None:
    name = "a-rather-long-name-of-a-file-in-this-folder.txt"
    (watched.service.root / name).write_text("x\n")
    watched.call("file.read", name).result(30)
    watched.terminal.press("/", "rather", "Enter")
    screen = watched.terminal.until("filter: rather", f"read {name[:20]}", name)
    head, row = (
        next(line for line in screen.splitlines() if text in line) for text in ("outcome", f"read {name[:20]}")
    )
    assert head.index("outcome") - head.index("what") >= 30, screen
    assert row.rstrip().endswith("ms") or row.rstrip().endswith("s")
    keys = [line for line in screen.splitlines() if "a approve" in line or "q quit" in line]
    assert len(keys) == 2 and all(part.count(" ") for line in keys for part in line.strip().split("  ")), keys


def test_rows_are_filtered_opened_and_shown_whole(watched: Watched) -> None:
    for name in ("apple.txt", "pear.txt"):
        (watched.service.root / name).write_text(f"the text of {name}\n")
        watched.call("file.read", name).result(30)
    watched.terminal.until("apple.txt", "pear.txt")
    watched.terminal.press("/", "apple", "Enter")
    watched.terminal.until("filter: apple", "apple.txt", without="pear.txt")
    watched.terminal.press("o")
    watched.terminal.until("the text of apple.txt")
    watched.terminal.press("q")
    watched.terminal.until("filter: apple")
    watched.terminal.press("Escape")
    watched.terminal.until("pear.txt", without="filter:")
    watched.terminal.press("?")
    watched.terminal.until("Keys", "the next view")
    watched.terminal.press("Escape")
    watched.terminal.until("q quit", without="the next view")


def test_what_was_before_is_there_and_older_calls_are_read_from_the_history(service: Service, tmp_path: Path) -> None:
    (service.root / "many.txt").write_text("x\n")
    with Client.over_socket(home=service.home) as linker:
        linker.scope("app").call("file.stat", "many.txt")
        for _ in range(120):
            linker.scope("app").call("file.list", ".")
    with terminal(tmp_path, [*PROGRAM, "watch"], environment(service.home)) as shown:
        shown.until("listed", "100 older calls")
        shown.press("b")
        shown.until("older calls", without="100 older calls")
        shown.press("/", "stat", "Enter")
        shown.until("filter: stat", "many.txt")


def test_back_in_time_says_so_goes_on_backwards_and_comes_back(tmp_path: Path) -> None:
    """Found: after `t` the list stayed in the past under the word "live", and `b` began again at the newest."""
    with serving(tmp_path) as service:
        (service.root / "early.txt").write_text("x\n")
        (service.root / "late.txt").write_text("x\n")
        with Client.over_socket(home=service.home) as linker:
            for _ in range(110):
                linker.scope("app").call("file.stat", "early.txt")
            until = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            linker.scope("app").call("file.stat", "late.txt")
        with terminal(tmp_path / "t", [*PROGRAM, "watch"], environment(service.home)) as shown:
            shown.until("late.txt", "100 older calls")
            shown.press("t", "bogus", "Enter")
            shown.until("`until:` is a time such as", "late.txt", without="BEFORE")
            shown.press("t", until, "Enter")
            shown.until("BEFORE", "l: now", "early.txt", "100 older calls", without="late.txt")
            shown.press("b")
            shown.until("BEFORE", "older calls", without="100 older calls")
            assert "late.txt" not in shown.screen
            shown.press("l")
            shown.until("late.txt", without="BEFORE")


def test_it_waits_for_a_service_that_ended_and_quits_at_once(tmp_path: Path) -> None:
    with (
        serving(tmp_path) as service,
        terminal(tmp_path / "t", [*PROGRAM, "watch"], environment(service.home)) as shown,
    ):
        shown.until("live")
        assert service.stop() == 0
        shown.until("NO SERVICE")
        shown.press("q")
        wait_for(lambda: not shown.is_open, seconds=5)


def test_calls_before_it_found_a_new_service_are_shown(tmp_path: Path) -> None:
    """Found: it took up the feed of the new service from then on, and said "live"."""
    with (
        serving(tmp_path) as service,
        terminal(tmp_path / "t", [*PROGRAM, "watch"], environment(service.home)) as shown,
    ):
        shown.until("live")
        assert service.stop() == 0
        shown.until("NO SERVICE")
        # Held while the new service starts and serves a call.
        with held(_python_of(shown.pid)), serving(tmp_path) as service:
            with Client.over_socket(home=service.home) as linker:
                linker.scope("app").call("file.stat", ".")
            os.kill(_python_of(shown.pid), signal.SIGCONT)
            shown.until("live", "looked at")


@contextlib.contextmanager
def held(pid: int) -> Iterator[None]:
    """A process that is stopped until the end at the latest."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def test_text_of_a_client_moves_no_cursor(watched: Watched) -> None:
    watched.call("file.read", "a\x1b[2J\x1b[Hb.txt").exception(30)
    screen = watched.terminal.until("Computer Linker  live", "read ")
    assert "\x1b" not in screen


def test_an_idle_view_uses_less_than_a_hundredth_of_a_core(watched: Watched) -> None:
    pid = _python_of(watched.terminal.pid)
    watched.call("file.list", ".").result(30)
    watched.terminal.until("listed")
    _until_quiet(pid)
    before = _cpu_ticks(pid)
    threading.Event().wait(20)
    used = (_cpu_ticks(pid) - before) / os.sysconf("SC_CLK_TCK")
    assert used < 0.2, f"{used:.2f} s of processor time in 20 s"


def _until_quiet(pid: int) -> None:
    """Wait until what was drawn and asked for the last call is done: two seconds with at most two ticks of the processor."""

    def is_quiet() -> bool:
        before = _cpu_ticks(pid)
        threading.Event().wait(2)
        return _cpu_ticks(pid) - before <= 2

    wait_for(is_quiet, step_s=0.0)


def _python_of(pid: int) -> int:
    """The program itself where tmux runs it through a shell."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(children[0]) if children else pid


def _cpu_ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def test_without_a_terminal_it_says_what_else_there_is(service: Service) -> None:
    done = subprocess.run(
        [*PROGRAM, "watch"], env=environment(service.home), stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 1 and "hint: computer-linker history --follow" in done.stderr


def test_a_terminal_that_shrank_and_grew_again_within_one_signal_is_drawn_whole(watched: Watched) -> None:
    """What the terminal lost meanwhile comes back without a key, although the size is the one that was drawn last."""
    pid = _python_of(watched.terminal.pid)
    whole = ("Computer Linker", "[1 calls]", "q quit")
    os.kill(pid, signal.SIGSTOP)
    try:
        watched.terminal.resize(60, 15)
        watched.terminal.resize(80, 24)
        screen = watched.terminal.screen
        assert not all(text in screen for text in whole), screen
    finally:
        os.kill(pid, signal.SIGCONT)
    watched.terminal.until(*whole)

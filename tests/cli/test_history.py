"""history on the command line, and its page in a real browser."""

import csv
import functools
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from computer_linker.audit.layout import segment_path
from computer_linker.model.principal import Principal
from support.road import Road, folder_scope
from support.service import write_config

pytestmark = pytest.mark.anyio

HOSTILE = "</script><script>document.title='pwned'</script>"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture
async def home(tmp_path: Path) -> Path:
    """A state folder in which two clients have done something."""
    async with Road.open(tmp_path) as road:
        for session, client in (("session-a", "claude-code"), ("session-b", "codex")):
            caller = Principal("local:tester", "local_user", session, f"connection-{session}", client)
            await road.call("file.write", "notes.txt", input={"content": "x"}, principal=caller)
            await road.call("file.read", HOSTILE, principal=caller)
            await road.call("file.stat", "a\u2028b\u0085c\u001b[31m", principal=caller)
            await road.call("file.read", "=cmd|calc", principal=caller)
    return tmp_path / "home"


def command(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-m", "computer_linker", "history", *arguments]
    environment = {**os.environ, "COMPUTER_LINKER_HOME": str(home)}
    return subprocess.run(program, env=environment, capture_output=True, text=True, timeout=60, check=False)


async def test_the_newest_events_come_one_a_line_and_nothing_raw_reaches_the_terminal(home: Path) -> None:
    told = command(home, "--limit", "3")
    assert told.returncode == 0, told.stderr
    assert len([line for line in told.stdout.splitlines() if line.startswith("2")]) == 3
    whole = command(home).stdout
    assert all(char.isprintable() or char == "\n" for char in whole)


async def test_a_line_has_the_id_that_undo_takes_and_what_the_act_was_about(tmp_path: Path) -> None:
    home, root = tmp_path / "home", tmp_path / "root"
    write_config(home, root)
    program = [sys.executable, "-m", "computer_linker"]
    environment = {**os.environ, "COMPUTER_LINKER_HOME": str(home)}
    before = json.loads((home / "config.json").read_text())["scopes"]
    for words in (["config", "set", "machineName", "other"], ["scope", "edit", "app", "--deny", "fs:write"]):
        subprocess.run([*program, *words], env=environment, capture_output=True, timeout=60, check=True)
    edited, renamed = command(home).stdout.splitlines()
    assert "  config.set  setting=machineName  done  " in renamed
    assert "  scope.edit  scope=app deny=fs:write  done  " in edited
    changed = edited.split("  ")[1]
    subprocess.run([*program, "undo", changed], env=environment, capture_output=True, timeout=60, check=True)
    assert json.loads((home / "config.json").read_text())["scopes"] == before
    assert f"  undo  undone={changed}  done  " in command(home, "--limit", "1").stdout


async def test_a_command_that_failed_does_not_read_as_plain_done(tmp_path: Path) -> None:
    async with Road.open(tmp_path, [folder_scope(tmp_path / "root", allowedCommands=["sh *"])]) as road:
        for code in (0, 3):
            await road.data("command.run", input={"command": ["sh", "-c", f"exit {code}"]})
    failed, done = command(tmp_path / "home").stdout.splitlines()
    assert "  done (exit 3)  " in failed and "  done  " in done


async def test_no_colour_is_written_where_it_is_not_wanted(home: Path) -> None:
    """On a real terminal: colour by default, and none with NO_COLOR."""
    for wanted, given in ((True, {}), (False, {"NO_COLOR": "1"})):
        environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
        leader, follower = pty.openpty()
        try:
            command = [sys.executable, "-m", "computer_linker", "history", "--limit", "1"]
            environment |= {"COMPUTER_LINKER_HOME": str(home), **given}
            subprocess.run(command, env=environment, stdout=follower, timeout=60, check=True)
            assert (b"\x1b[" in os.read(leader, 4096)) == wanted
        finally:
            os.close(leader)
            os.close(follower)


async def test_views_queries_and_json(home: Path) -> None:
    told = json.loads(command(home, "--json", "--view", "timeline", "--query", "op:file.write", "--since", "1h").stdout)
    assert [event["op"] for event in told["events"]] == ["file.write", "file.write"]
    assert "session-a" in command(home, "--view", "sessions").stdout
    refused = command(home, "--query", "ok:perhaps")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith("error: ")


async def test_export_is_one_json_object_a_line_and_a_csv_without_formulas(home: Path, tmp_path: Path) -> None:
    lines = command(home, "export").stdout.splitlines()
    assert [json.loads(line)["op"] for line in lines].count("file.write") == 2 and len(lines) == 8
    assert command(home, "export", "--format", "csv", "--output", str(tmp_path / "e.csv")).returncode == 0
    with (tmp_path / "e.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 8
    assert not [value for row in rows for value in row.values() if value.startswith(("=", "+", "@"))]


async def test_verify_says_where_the_history_was_changed(home: Path) -> None:
    assert command(home, "verify").returncode == 0
    path = segment_path(home / "audit", 1)
    path.write_bytes(path.read_bytes().replace(b'"op":"file.stat"', b'"op":"file.list"', 1))
    told = command(home, "verify", "--json")
    assert told.returncode == 1
    assert json.loads(told.stdout)["firstBad"] is not None


async def test_prune_keeps_what_stays_provable(home: Path) -> None:
    assert command(home, "prune").returncode == 2
    assert command(home, "prune", "--older-than", "0d", "--json").returncode == 0
    assert command(home, "verify").returncode == 0
    (left,) = json.loads(command(home, "--json").stdout)["events"]
    assert (left["op"], left["effect"], left["ok"]) == ("history.prune", "confirmed", True)
    assert left["summary"]["removed"] >= 8 and left["principal"].startswith("cli:")


async def test_without_a_history_there_is_one_clear_line(tmp_path: Path) -> None:
    told = command(tmp_path / "nothing")
    assert told.returncode == 1 and told.stderr.startswith("error: there is no history yet\nhint: ")
    assert not (tmp_path / "nothing").exists()


async def test_follow_tells_events_as_they_come(tmp_path: Path) -> None:
    async with Road.open(tmp_path) as road:
        await road.call("file.stat", "before.txt")
        program = [sys.executable, "-m", "computer_linker", "history", "--follow", "--json"]
        environment = {**os.environ, "COMPUTER_LINKER_HOME": str(road.home)}
        # A runner in the background may have told its children to ignore Ctrl-C.
        heed = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
        child = subprocess.Popen(program, env=environment, stdout=subprocess.PIPE, preexec_fn=heed)
        assert child.stdout is not None
        try:
            os.set_blocking(child.stdout.fileno(), False)
            told, end = b"", time.monotonic() + 30
            while b"\n" not in told and time.monotonic() < end:
                await road.call("file.write", "during.txt", input={"content": "x"})
                told += child.stdout.read() or b""
            assert json.loads(told.splitlines()[0])["target"] == "during.txt"
        finally:
            child.send_signal(signal.SIGINT)
            assert child.wait(timeout=60) == 130
            child.stdout.close()


def browse(page: Path, profile: Path, *flags: str) -> str:
    assert CHROMIUM is not None
    program = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
    program += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    program += [f"--user-data-dir={profile}", "--window-size=1400,900", *flags, page.as_uri()]
    return subprocess.run(program, capture_output=True, text=True, timeout=90, check=True).stdout


@pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium")
async def test_the_page_draws_sessions_as_lanes_and_runs_nothing_it_was_told(home: Path, tmp_path: Path) -> None:
    page = tmp_path / "timeline.html"
    assert command(home, "timeline", "--html", str(page)).returncode == 0
    drawn = browse(page, tmp_path / "profile", "--dump-dom")
    assert "<title>History</title>" in drawn
    assert drawn.count('class="lane"') == 2 and drawn.count('class="mark ') == 8
    assert "8 of 8 events" in drawn
    assert "&lt;/script&gt;&lt;script&gt;document.title='pwned'" in drawn.replace("&#39;", "'")
    browse(page, tmp_path / "profile", f"--screenshot={tmp_path / 'shot.png'}")
    assert (tmp_path / "shot.png").read_bytes().startswith(b"\x89PNG")


async def test_the_page_fetches_nothing(home: Path, tmp_path: Path) -> None:
    page = tmp_path / "timeline.html"
    command(home, "timeline", "--html", str(page))
    text = page.read_text("utf-8")
    assert "default-src 'none'" in text and "http://" not in text and "https://" not in text
    assert text.count("</script>") == 2

"""history on the command line, and its page in a real browser."""

import csv
import functools
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from datetime import datetime
from importlib.resources import files
from pathlib import Path

import pytest

from computer_linker.approvals.approvals import Approvals
from computer_linker.audit.layout import segment_path
from computer_linker.model.history import HistoryApproval, HistoryEvent
from computer_linker.model.principal import Principal
from support.browser import phone
from support.on_terminal import on_terminal
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
    return subprocess.run(program, env=environment, capture_output=True, text=True, timeout=240, check=False)


async def test_the_newest_events_come_one_a_line_and_nothing_raw_reaches_the_terminal(home: Path) -> None:
    told = command(home, "--limit", "3")
    assert told.returncode == 0, told.stderr
    assert len([line for line in told.stdout.splitlines() if line.startswith("2")]) == 3
    whole = command(home).stdout
    assert all(char.isprintable() or char == "\n" for char in whole)


async def test_a_row_has_local_time_short_id_who_what_outcome_and_duration(home: Path) -> None:
    head, *rows = command(home).stdout.splitlines()
    assert head.split() == ["time", "id", "who", "scope", "what", "outcome", "took"]
    assert len({row.index("  ") for row in rows}) == 1, "the columns are aligned"
    events = json.loads(command(home, "--json").stdout)["events"]
    for row, event in zip(rows, events, strict=True):
        local = datetime.fromisoformat(event["startedAt"]).astimezone()
        assert row.startswith(f"{local:%Y-%m-%d %H:%M:%S}  {event['operationId'][-7:]}  {event['client']}")
        assert f" {event['scope']} " in row and event["scope"] == "app"
    assert "  wrote notes.txt  " in rows[-1] and "  done  " in rows[-1] and rows[-1].endswith("ms")
    assert "failed: not found" in command(home, "--query", "op:file.read").stdout


async def test_refusals_name_their_object_and_the_rule(tmp_path: Path) -> None:
    """Also where the capability itself is missing, and the request was never parsed."""
    scope = folder_scope(tmp_path / "root", allowedCommands=["git *"], deniedCommands=["git push *"])
    blind = {**folder_scope(tmp_path / "root", "blind"), "capabilities": ["history:read"]}
    async with Road.open(tmp_path, [scope, blind]) as road:
        await road.call("command.run", input={"command": ["git", "push", "--password=hunter2-Kx9", "origin"]})
        await road.call("command.run", input={"command": "make it so"})
        await road.call("file.read", "../outside.txt")
        await road.call("file.write", "kept.txt", scope="blind", input={"content": "x"})
        await road.call("command.run", scope="blind", input={"command": ["ls", "-l"]})
        await road.call("file.write", "misspelt.txt", input={})
        await road.call("file.read", "elsewhere.txt", scope="nowhere")
        road.app.dispatcher.pause.begin(None)
        await road.call("file.read", "paused.txt")
    told = command(tmp_path / "home").stdout
    assert "tried to run git push --password=[masked] origin  refused: a denied command" in told
    assert re.search(r"tried to run make it so +refused: not an allowed command", told)
    assert re.search(r"tried to read \.\./outside\.txt +refused: outside the scope", told)
    assert re.search(r"tried to write kept\.txt +refused: ", told) and re.search(r"tried to run ls -l +refused: ", told)
    assert re.search(r"tried to read paused\.txt +refused: clients are paused", told)
    assert re.search(r"tried to write misspelt\.txt +failed: ", told) and "tried to read elsewhere.txt" in told
    assert not (tmp_path / "root" / "kept.txt").exists() and "hunter2" not in told


async def test_what_had_no_yes_reads_as_a_refusal(tmp_path: Path) -> None:
    """Defect: `kept changes of the view ... failed: confirm required`."""
    scope = folder_scope(tmp_path / "root", confirm="all")
    async with Road.open(tmp_path, [scope]) as road:
        (road.root / "keep.txt").write_text("x")
        assert await road.code("file.delete", "keep.txt") == "confirm_required"
        assert await road.code("view.keep", "view_0123456789abcdef") == "not_found"
        refused = await road.call("file.write", "new.txt", input={"content": "x"})
        road.app.services.use(Approvals).answer(refused["error"]["details"]["approvalId"], "no")
        assert await road.code("file.write", "new.txt", input={"content": "x"}) == "denied_by_person"
    told = command(tmp_path / "home").stdout
    assert re.search(r"tried to delete keep\.txt +refused: it needs your yes", told)
    assert re.search(r"tried to keep changes of the view .*failed: not found", told)
    assert re.search(r"tried to write new\.txt +denied by ", told)
    assert "confirm required" not in told


async def test_a_batch_that_came_halfway_says_how_far(tmp_path: Path) -> None:
    """Defect: `tried to run a batch  refused: it needs your yes`, although steps of it had run."""
    free, asking = folder_scope(tmp_path / "root", "free"), folder_scope(tmp_path / "asking", "asking", confirm="all")
    (tmp_path / "asking").mkdir()
    (tmp_path / "asking" / "b.txt").write_text("x")
    made = {"op": "file.write", "scope": "free", "target": "a.txt", "input": {"content": "x"}}
    uses = {"op": "file.write", "scope": "asking", "target": "b.txt", "input": {"content": "$1.path"}}
    async with Road.open(tmp_path, [free, asking]) as road:
        given = {"operations": [made, uses, {**made, "target": "c.txt"}]}
        assert not (await road.call("batch.run", scope="free", input=given))["ok"]
        assert (road.root / "a.txt").exists() and not (road.root / "c.txt").exists()
        nothing = {"operations": [{"op": "file.read", "scope": "free", "target": "missing"}]}
        await road.call("batch.run", scope="free", input=nothing)
    told = command(tmp_path / "home").stdout
    assert re.search(
        r"  ran a batch: write a\.txt; write b\.txt; write c\.txt +1 of 3 steps done; 1 failed: no yes  ", told
    ), told
    assert re.search(r"batch: read missing +failed: not found  ", told)
    assert (tmp_path / "asking" / "b.txt").read_text() == "x"


async def test_a_row_has_the_id_that_undo_takes_and_what_the_act_was_about(tmp_path: Path) -> None:
    home, root = tmp_path / "home", tmp_path / "root"
    write_config(home, root)
    program = [sys.executable, "-m", "computer_linker"]
    environment = {**os.environ, "COMPUTER_LINKER_HOME": str(home)}
    before = json.loads((home / "config.json").read_text())["scopes"]
    for words in (["config", "set", "machineName", "other"], ["scope", "edit", "app", "--deny", "fs:write"]):
        subprocess.run([*program, *words], env=environment, capture_output=True, timeout=240, check=True)
    _, edited, renamed = command(home).stdout.splitlines()
    assert "changed the config machineName test -> other " in renamed
    assert "changed the scope app: capabilities removed fs:write " in edited
    changed = edited.split("  ")[1]
    assert len(changed) == 7
    subprocess.run([*program, "undo", changed, "--yes"], env=environment, capture_output=True, timeout=240, check=True)
    assert json.loads((home / "config.json").read_text())["scopes"] == before
    assert f"  took back the change of the config ({changed})  done  " in command(home, "--limit", "1").stdout


async def test_a_command_that_failed_does_not_read_as_done(tmp_path: Path) -> None:
    async with Road.open(tmp_path, [folder_scope(tmp_path / "root", allowedCommands=["sh *", "git *"])]) as road:
        for code in (0, 128):
            await road.data("command.run", input={"command": ["sh", "-c", f"exit {code}"]})
        await road.data("command.run", input={"command": ["git", "add", "nothing"]})
    _, added, failed, done = command(tmp_path / "home").stdout.splitlines()
    assert "  exit 128  " in failed and "done" not in failed and "  done  " in done
    assert "ran git add nothing" in added and "  exit 128  " in added


@pytest.mark.parametrize("columns", [80, 132])
async def test_a_terminal_gets_rows_of_its_width_in_colour(home: Path, columns: int) -> None:
    for wanted, given in ((True, {}), (False, {"NO_COLOR": "1"})):
        screen = on_terminal(home, ["history"], columns, **given)
        assert ("\x1b[" in screen) == wanted
        rows = re.sub(r"\x1b\[[0-9;]*m", "", screen).split("\r\n")
        assert all(len(row) <= columns for row in rows[:-2]), rows
        today = datetime.now().astimezone()
        assert rows[1] == f"{today:%A %Y-%m-%d}"
        assert re.match(r"\d\d:\d\d:\d\d  \w{7}  codex ", rows[2])


async def test_show_tells_everything_of_one_operation_and_undo_takes_its_id(tmp_path: Path) -> None:
    async with Road.open(tmp_path) as road:
        (road.root / "notes.txt").write_text("first\n")
        await road.data("file.write", "notes.txt", input={"content": "second\n"})
        (event,) = (await road.data("history.last"))["events"]
        whole = str(event["operationId"])
    home = tmp_path / "home"
    config = {
        "schemaVersion": 1, "machineId": "test-machine", "machineName": "test", "ownerToken": None,
        "scopes": [folder_scope(tmp_path / "root")],
    }  # fmt: skip
    (home / "config.json").write_text(json.dumps(config))
    (home / "config.json").chmod(0o600)
    for given in (whole, whole[-7:].lower(), whole[:25]):
        told = command(home, "show", given)
        assert told.returncode == 0, told.stderr
        lines = told.stdout.splitlines()
        assert lines[:2] == ["tests: wrote notes.txt", "done"]
        assert "  -first" in lines and "  +second" in lines
        assert f"$ computer-linker undo {whole}" in lines
        began = datetime.fromisoformat(str(event["startedAt"])).astimezone()
        assert re.search(rf"^started at +{began:%Y-%m-%d %H:%M:%S}$", told.stdout, re.MULTILINE), told.stdout
    details = json.loads(command(home, "show", whole, "--json").stdout)
    assert details["event"]["machineId"] == "test-machine" and details["undoable"] is True
    assert command(home, "show", "ZZZZZZZ").returncode == 1
    program = [sys.executable, "-m", "computer_linker", "undo", "notes.txt"]
    environment = {**os.environ, "COMPUTER_LINKER_HOME": str(home)}
    subprocess.run(program, env=environment, capture_output=True, timeout=240, check=True)
    assert (tmp_path / "root" / "notes.txt").read_text() == "first\n"
    assert json.loads(command(home, "show", whole, "--json").stdout)["undoable"] is False


async def test_an_undo_is_one_row_and_takes_none_of_the_rows_that_were_asked_for(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with Road.open(tmp_path) as road:
        for content in ("1", "2", "3"):
            await road.data("file.write", "notes.txt", input={"content": content})
        last = (await road.call("batch.run", input={"steps": []}))["operationId"]
    write_config(home, tmp_path / "root")
    environment = {**os.environ, "COMPUTER_LINKER_HOME": str(home)}
    codes = [
        subprocess.run(
            [sys.executable, "-m", "computer_linker", "undo", what], env=environment, timeout=240, check=False
        )
        for what in ("notes.txt", str(last))
    ]
    assert [done.returncode for done in codes] == [0, 1]
    _, nothing, undone, tried, *written = command(home, "--limit", "6").stdout.splitlines()
    assert "nothing kept to undo" in nothing and "characters" not in nothing
    assert "took back the change of notes.txt" in undone and "tried to run a batch" in tried
    assert len(written) == 3 and all("wrote notes.txt" in row for row in written)
    asked = command(home, "--query", "op:file.undo", "--limit", "6").stdout.splitlines()
    assert len(asked) == 2 and "took back the change of notes.txt" in asked[1]
    assert len(command(home, "--limit", "3").stdout.splitlines()) == 4


@pytest.mark.parametrize("session", ["session-1", "a session's name", "$(touch x) `y`"])
async def test_a_command_that_show_names_runs_as_it_is_written(tmp_path: Path, session: str) -> None:
    """Defect: `history --query session:…` of a session whose name a shell divides."""
    async with Road.open(tmp_path) as road:
        await road.call("file.stat", ".", principal=Principal("local:tester", "local_user", session, "c", "tests"))
        await road.call("file.stat", ".", principal=Principal("local:tester", "local_user", "another", "c", "tests"))
    home = tmp_path / "home"
    other, mine = (one["operationId"] for one in json.loads(command(home, "--json").stdout)["events"])
    [suggested] = json.loads(command(home, "show", mine, "--json").stdout)["commands"]
    _, _, *words = shlex.split(suggested)
    found = json.loads(command(home, *words, "--json").stdout)["events"]
    assert [one["operationId"] for one in found] == [mine] != [other]


async def test_views_queries_and_json(home: Path) -> None:
    told = json.loads(command(home, "--json", "--view", "timeline", "--query", "op:file.write", "--since", "1h").stdout)
    assert [event["op"] for event in told["events"]] == ["file.write", "file.write"]
    assert "session-a" in command(home, "--view", "sessions").stdout
    refused = command(home, "--query", "ok:perhaps")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith("error: ")
    unknown = command(home, "--query", "colour:red")
    assert unknown.returncode == 2 and "no term `colour:`" in unknown.stderr and "since, until" in unknown.stderr
    assert "notes" in command(home, "--query", '"notes').stdout
    for wrong, why in (("op:", "`op:`"), ("ok: true", "`ok:`"), ('op:""', "`op:`")):
        refused = command(home, "--query", wrong)
        assert (refused.returncode, refused.stdout) == (2, "") and why in refused.stderr, wrong
    assert "8 operations, " in command(home, "--view", "summary").stdout
    assert len(command(home, "--view", "sessions", "--limit", "1").stdout.splitlines()) == 2
    assert json.loads(command(home, "--json", "--view", "timeline", "-n", "8").stdout)["machineId"] == "test-machine"


async def test_export_is_one_json_object_a_line_and_a_csv_without_formulas(home: Path, tmp_path: Path) -> None:
    lines = command(home, "export").stdout.splitlines()
    assert [json.loads(line)["op"] for line in lines].count("file.write") == 2 and len(lines) == 8
    assert command(home, "export", "--format", "csv", "--output", str(tmp_path / "e.csv")).returncode == 0
    with (tmp_path / "e.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 8
    assert not [value for row in rows for value in row.values() if value.startswith(("=", "+", "@"))]
    assert (tmp_path / "e.csv").stat().st_mode & 0o777 == 0o600
    flat = {f"approval.{name}" for name in HistoryApproval.__annotations__}
    assert set(rows[0]) == {*HistoryEvent.__annotations__, *flat} - {"approval", "machine"}
    assert {row["machineId"] for row in rows} == {"test-machine"}


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
            assert child.wait(timeout=240) == 130
            child.stdout.close()


def browse(page: Path, profile: Path, *flags: str, fragment: str = "") -> str:
    assert CHROMIUM is not None
    program = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
    program += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    program += [f"--user-data-dir={profile}", "--window-size=1400,900", *flags, f"{page.as_uri()}#{fragment}"]
    return subprocess.run(program, capture_output=True, text=True, timeout=240, check=True).stdout


@pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium")
async def test_the_page_draws_clients_as_lanes_and_runs_nothing_it_was_told(home: Path, tmp_path: Path) -> None:
    page = tmp_path / "timeline.html"
    assert command(home, "timeline", "--html", str(page)).returncode == 0
    assert page.stat().st_mode & 0o777 == 0o600
    chosen = json.loads(command(home, "--json", "--limit", "1").stdout)["events"][0]["operationId"][-7:]
    drawn = browse(page, tmp_path / "profile", "--dump-dom", fragment=chosen)
    assert f"computer-linker history show {chosen}" in drawn and ">wrote notes.txt</span>" in drawn
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


@pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium")
async def test_the_page_is_readable_at_360_pixels(home: Path, tmp_path: Path) -> None:
    page = tmp_path / "timeline.html"
    assert command(home, "timeline", "--html", str(page)).returncode == 0
    with phone(tmp_path / "profile") as browser:
        browser.send("Emulation.setDeviceMetricsOverride", width=360, height=780, deviceScaleFactor=1, mobile=True)
        browser.open(page.as_uri())
        assert browser.eval("innerWidth") == 360
        assert browser.eval("document.documentElement.scrollWidth") <= 360, "nothing is off the screen"
        browser.click(".event")
        details = "document.getElementById('details').getBoundingClientRect()"
        assert browser.eval(f"{details}.right") <= 360 and browser.eval(
            "document.querySelector('li #details') !== null"
        )
        small = "[...document.querySelectorAll('.event span, #details *')].map(n => parseFloat(getComputedStyle(n).fontSize))"
        assert browser.eval(f"Math.min(...{small})") >= 12


def test_every_text_of_the_page_has_a_contrast_of_at_least_4_5() -> None:
    css = files("computer_linker.audit").joinpath("assets", "page.css").read_text("utf-8")
    schemes = [dict(re.findall(r"--(\w+): (#[0-9a-f]{6});", part)) for part in css.split("@media")[:2]]
    assert all(len(colours) == 12 for colours in schemes)
    assert "opacity: ." not in css and not re.search(r"[^-]color: #", css), "every colour is one of those"
    for colours in schemes:
        for ground in ("ground", "panel", "chosen"):
            for name in ("text", "done", "failed", "refused", "unknown", "running", "changed"):
                assert contrast(colours[name], colours[ground]) >= 4.5, (name, ground)
        for ground in ("ground", "panel"):
            assert contrast(colours["quiet"], colours[ground]) >= 4.5


def contrast(one: str, other: str) -> float:
    """The contrast ratio as WCAG 2 defines it."""
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue

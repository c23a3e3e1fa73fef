"""What the programs print becomes events; forms as observed with Codex 0.166 and Claude Code 2.1.325."""

import json
from pathlib import Path
from typing import Any

import pytest

from computer_linker.providers.agents.claude import Claude
from computer_linker.providers.agents.codex import Codex
from computer_linker.providers.agents.program import Ask, Event, clip
from computer_linker.providers.agents.sessions import EventLog, Session, Sessions, Turn


def codex(*values: Any) -> list[Event]:
    parser = Codex().parser()
    return [event for value in values for event in parser.events(json.dumps(value))]


def test_codex_items_become_events() -> None:
    command = {
        "id": "i",
        "type": "command_execution",
        "command": "ls",
        "aggregated_output": "a\n",
        "exit_code": 1,
        "status": "failed",
    }
    change = {"id": "c", "type": "file_change", "changes": [{"path": "/w/a", "kind": "add"}], "status": "completed"}
    call = {
        "id": "m",
        "type": "mcp_tool_call",
        "server": "s",
        "tool": "t",
        "status": "failed",
        "error": {"message": "no"},
    }
    found = codex(
        {"type": "thread.started", "thread_id": "abc"},
        *({"type": "item.completed", "item": item} for item in (command, change, call)),
        {"type": "turn.completed", "usage": {"input_tokens": 3}},
    )
    assert found == [
        {"type": "thread", "threadId": "abc"},
        {"id": "i", "status": "failed", "type": "command", "command": "ls", "output": "a\n", "exitCode": 1},
        {"id": "c", "status": "completed", "type": "file_change", "changes": [{"path": "/w/a", "kind": "add"}]},
        {"id": "m", "status": "failed", "type": "tool_call", "server": "s", "tool": "t", "text": "no"},
        {"type": "usage", "usage": {"input_tokens": 3}},
        {"type": "turn", "status": "completed"},
    ]


@pytest.mark.parametrize(
    "line", ["", "not json", "[]", "null", '{"type": 7}', '{"type": "item.completed"}', '{"type":"user","message":3}']
)
@pytest.mark.parametrize("program", [Codex(), Claude()], ids=["codex", "claude"])
def test_what_is_no_event_is_left_out(program: Codex | Claude, line: str) -> None:
    assert program.parser().events(line) == []


def test_claude_joins_a_call_with_its_result() -> None:
    parser = Claude().parser()
    use = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "false"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "Exit code 3\nno", "is_error": True}
    first = parser.events(json.dumps({"type": "assistant", "message": {"content": [use]}}))
    second = parser.events(json.dumps({"type": "user", "message": {"content": [result]}}))
    assert first == [{"type": "command", "command": "false", "id": "t1", "status": "running"}]
    assert (second[0]["status"], second[0]["exitCode"], second[0]["command"]) == ("failed", 3, "false")


def test_long_texts_keep_their_start_and_end() -> None:
    text = clip("a" * 50_000 + "end", 1000)
    assert len(text) < 1100 and text.startswith("aaa") and text.endswith("end")


def test_the_log_is_bounded_numbered_and_survives(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "events.jsonl")
    for number in range(6000):
        log.add({"type": "message", "text": str(number)})
    events, cursor, dropped = log.since(0, 1000)
    assert dropped == 2000 and events[0]["seq"] == 2000 and cursor == events[-1]["seq"] + 1
    log.close()
    with (tmp_path / "events.jsonl").open("ab") as file:
        file.write(b'{"type": "mess')
    again = EventLog(tmp_path / "events.jsonl")
    again.add({"type": "message", "text": "after"})
    again.close()
    assert EventLog(tmp_path / "events.jsonl").since(6000, 1000)[0] == [
        {"type": "message", "text": "after", "seq": 6000}
    ]


def test_a_huge_log_is_written_anew(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "events.jsonl")
    for _ in range(1500):
        log.add({"type": "message", "text": "x" * 16_000})
    log.close()
    assert (tmp_path / "events.jsonl").stat().st_size < 20 << 20
    assert log.end == 1500


def test_sessions_are_private_and_ids_name_no_other_file(tmp_path: Path) -> None:
    sessions = Sessions(tmp_path / "sessions")
    turn = Turn(operation_id="o", workflow="run", sandbox="read-only", prompt="secret", started_at="now")
    session = Session(
        session_id="codex_" + "0" * 24,
        agent="codex",
        scope="app",
        principal="p",
        target=".",
        created_at="now",
        turns=[turn],
    )
    sessions.save(session)
    assert sessions.find(session.session_id) == session
    assert [path.stat().st_mode & 0o077 for path in (tmp_path / "sessions").rglob("*")] == [0, 0]
    for other in ("../sessions", "codex_../../x", "", "codex_" + "0" * 23, f"{session.session_id}/"):
        assert sessions.find(other) is None


def test_codex_is_never_given_more_than_was_asked(tmp_path: Path) -> None:
    ask = Ask(mode="workspace-write", network=False, is_confined=True, where='/w/with "quotes"')
    line = Codex().line(ask, {"CODEX_HOME": "/var/empty", "OPENAI_API_KEY": "k", "SECRET": "s"}, tmp_path)
    assert line.argv[:2] == ["codex", "exec"] and line.argv[-1] == "-"
    assert "danger-full-access" not in str(line.argv) and "bypass" not in str(line.argv)
    assert "sandbox_workspace_write.network_access=false" in line.argv
    assert "sandbox_workspace_write.writable_roots=[]" in line.argv
    assert line.env == {"OPENAI_API_KEY": "k", "CODEX_HOME": "/var/empty"}

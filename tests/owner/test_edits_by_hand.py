"""What is changed in config.json without a command is in the history, in plain words, and can be taken back."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.commands import command
from support.service import Service, serving, wait_for, write_config

TOKEN = "first-owner-token-0123456789abcdef"


def edit(home: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the file as an editor does: in place."""
    document = json.loads((home / "config.json").read_bytes())
    change(document)
    (home / "config.json").write_text(json.dumps(document, indent=4))


def edits(home: Path) -> list[dict[str, Any]]:
    found = json.loads(command(home, "history", "--view", "timeline", "--limit", "500", "--json").stdout)["events"]
    return [event for event in found if event["op"] == "config.edit"]


def rows(home: Path) -> str:
    return command(home, "history").stdout


def ask_always(document: dict[str, Any]) -> None:
    document["scopes"][0]["policy"]["confirm"] = "all"


def test_an_edit_is_in_the_history_before_anyone_calls(tmp_path: Path) -> None:
    """Found: an edited file took effect, and nothing said that or what had changed."""
    with serving(tmp_path, token=TOKEN) as service:
        edit(service.home, ask_always)
        wait_for(lambda: "config.json was edited: app: confirm never -> all" in rows(service.home))
        [event] = edits(service.home)
        assert (event["ok"], event["principal"], event["scope"]) == (True, "by hand", "")
        other = service.root / "more"
        other.mkdir()

        def several(document: dict[str, Any]) -> None:
            document["scopes"].append({"id": "more", "roots": [str(other)], "capabilities": ["fs:read"]})
            document["machineName"], document["ownerToken"] = "desk", "another-owner-token-0123456789abc"

        edit(service.home, several)
        wait_for(lambda: len(edits(service.home)) == 2)
        shown = command(service.home, "history", "show", edits(service.home)[1]["operationId"]).stdout
        for line in ("machineName test -> desk", f"more: scope added, {other} may fs:read", "ownerToken changed"):
            assert line in shown, shown
        assert "another-owner" not in shown and TOKEN not in shown
        kept = b"".join(path.read_bytes() for path in (service.home / "audit").rglob("*") if path.is_file())
        noted = (service.home / "config.noted.json").read_text()
        assert b"another-owner" not in kept and "another-owner" not in noted


def test_a_file_that_is_refused_is_in_the_history_with_the_reason(tmp_path: Path) -> None:
    with serving(tmp_path, token=TOKEN) as service:
        broken(service, '{"scopes": [')
        wait_for(lambda: "refused: config.json:1:" in rows(service.home))
        misspelt = json.loads(last_good(service))
        misspelt["scopes"][0]["policy"] = {"confrim": "all"}
        broken(service, json.dumps(misspelt, indent=2))
        wait_for(lambda: len(edits(service.home)) == 2)
        assert "confrim" in edits(service.home)[1]["reason"]
        assert edits(service.home)[1]["ok"] is False
        broken(service, last_good(service))
        command(service.home, "config", "set", "machineName", "named")
        assert len(edits(service.home)) == 2, "what is as it was before has changed nothing"


def broken(service: Service, text: str) -> None:
    (service.home / "config.json").write_text(text)


def last_good(service: Service) -> str:
    return (service.home / "config.last-good.json").read_text()


def test_a_removed_file_is_in_the_history(tmp_path: Path) -> None:
    with serving(tmp_path, token=TOKEN) as service:
        command(service.home, "config", "set", "machineName", "named")
        (service.home / "config.json").rename(tmp_path / "away.json")
        wait_for(lambda: edits(service.home))
        assert "no config.json" in edits(service.home)[0]["reason"]
        (tmp_path / "away.json").rename(service.home / "config.json")


def test_an_edit_while_no_service_runs_stands_before_the_next_act(tmp_path: Path) -> None:
    home = tmp_path / "home"
    write_config(home, tmp_path / "root", token=TOKEN)
    assert command(home, "config", "set", "machineName", "one").returncode == 0
    edit(home, ask_always)
    assert command(home, "config", "set", "machineName", "two").returncode == 0
    found = json.loads(command(home, "history", "--view", "timeline", "--json").stdout)["events"]
    assert [event["op"] for event in found] == ["config.set", "config.edit", "config.set"]
    assert "confirm never -> all" in found[1]["summary"]["changed"]


def test_a_commands_own_change_is_no_edit_by_hand(tmp_path: Path) -> None:
    with serving(tmp_path, token=TOKEN) as service:
        (tmp_path / "other").mkdir()
        for words in (
            ("scope", "add", tmp_path / "other", "--id", "other"), ("scope", "allow", "other", "ls *"),
            ("config", "set", "machineName", "named"), ("token", "rotate"), ("undo", "last", "--yes"),
        ):  # fmt: skip
            assert command(service.home, *words).returncode == 0, words
        # Written anew with the same fields, and read by the service since.
        edit(service.home, lambda document: None)
        edit(service.home, ask_always)
        wait_for(lambda: edits(service.home))
        [event] = edits(service.home)
        assert event["summary"]["changed"] == "app: confirm never -> all"


@pytest.mark.parametrize("by", ["id", "last"])
def test_an_edit_is_undone_by_a_command(tmp_path: Path, by: str) -> None:
    with serving(tmp_path, token=TOKEN) as service:
        command(service.home, "config", "set", "machineName", "named")
        edit(service.home, lambda document: document["scopes"][0].update(name="By hand"))
        wait_for(lambda: edits(service.home))
        wanted = edits(service.home)[0]["operationId"] if by == "id" else "last"
        wait_for(lambda: command(service.home, "undo", wanted).returncode == 0)
        assert "name" not in json.loads((service.home / "config.json").read_bytes())["scopes"][0]
        assert len(edits(service.home)) == 1


def test_undoing_a_repair_says_that_the_config_will_be_broken_and_asks(tmp_path: Path) -> None:
    """Found: `undo last` after `doctor --fix` put the broken file back and said nothing of it."""
    home = tmp_path / "home"
    write_config(home, tmp_path / "root", token=TOKEN)
    assert command(home, "config", "set", "machineName", "one").returncode == 0
    wrong = (home / "config.json").read_text().replace('"machineName"', '"machineNme"')
    (home / "config.json").write_text(wrong)
    command(home, "doctor", "--fix")
    repaired = (home / "config.json").read_bytes()
    assert repaired != wrong.encode()
    refused = command(home, "undo", "last")
    assert refused.returncode == 1 and "not valid" in refused.stderr and "machineNme" in refused.stderr, refused
    assert "--yes" in refused.stderr and (home / "config.json").read_bytes() == repaired
    done = command(home, "undo", "last", "--yes")
    assert done.returncode == 0 and "It is not valid now" in done.stdout and "machineNme" in done.stdout, done
    assert (home / "config.json").read_bytes() == wrong.encode()

"""While a broken config.json closes a scope, `status` is not ready and names it, and a client gets the reason."""

import json
from pathlib import Path

import pytest

from computer_linker.client.socket_client import call_service
from support.commands import command
from support.service import write_config


def test_status_and_the_client_are_given_the_reason_why_a_scope_is_closed(tmp_path: Path) -> None:
    home, root = tmp_path / "home", tmp_path / "root"
    write_config(home, root, token="t" * 32)
    (root / "x").write_text("CANARY")
    read = ("op", "file.read", "x", "--scope", "app", "--json")
    try:
        assert "CANARY" in command(home, *read).stdout
        assert json.loads(command(home, "status", "--json").stdout)["status"]["ready"] is True
        document = json.loads((home / "config.json").read_bytes())
        document["scopes"][0]["policy"] = {"confrim": "all"}
        (home / "config.json").write_text(json.dumps(document, indent=2))
        shown = command(home, "status")
        assert shown.returncode == 1 and "not ready" in shown.stdout, shown.stdout
        assert "closed until fixed: app" in shown.stdout and "confrim" in shown.stdout
        assert "next: Run: computer-linker doctor --fix" in shown.stdout
        status = json.loads(command(home, "status", "--json").stdout)["status"]
        assert status["ready"] is False and "closed until fixed: app" in status["blockingReasons"][0]
        looked = command(home, "doctor")
        assert looked.returncode == 1 and "closed until fixed: app" in looked.stdout
        answer = call_service(home, "computer_operation", {"scope": "app", "op": "file.read", "target": "x"})
        assert answer["ok"] is False and "CANARY" not in json.dumps(answer)
        error = answer["error"]
        assert error["code"] == "permission_denied" and "config file, which is not valid" in error["message"]
        hint = command(home, *read[:-1]).stderr
        assert "hint: computer-linker doctor names the line" in hint and "scope edit" not in hint, hint
        del document["scopes"][0]["policy"]["confrim"]
        (home / "config.json").write_text(json.dumps(document))
        assert "CANARY" in command(home, *read).stdout
        assert command(home, "status").returncode == 0
    finally:
        command(home, "stop")


@pytest.mark.parametrize("text", ["{", '"colour": 1,'], ids=["not JSON", "unknown field"])
def test_the_owner_goes_on_as_clients_do_while_the_file_is_broken(tmp_path: Path, text: str) -> None:
    home, root = tmp_path / "home", tmp_path / "root"
    write_config(home, root, token="t" * 32)
    try:
        assert command(home, "op", "file.write", "x", "--input", "content=1").returncode == 0
        (home / "config.json").write_text((home / "config.json").read_text().replace("{", "{" + text, 1))
        broken = (home / "config.json").read_bytes()
        read = command(home, "op", "file.read", "x")
        assert (read.returncode, read.stdout) == (0, "1"), read.stderr
        assert command(home, "undo", "last").returncode == 0 and not (root / "x").exists()
        assert (home / "config.json").read_bytes() == broken
    finally:
        command(home, "stop")
    refused = command(home, "op", "file.read", "x")
    assert refused.returncode == 1 and "config.json" in refused.stderr, "without a service nothing is in force"


def test_the_hint_of_a_missing_folder_is_a_command_that_helps(tmp_path: Path) -> None:
    home, root = tmp_path / "home", tmp_path / "root"
    write_config(home, root, token="t" * 32)
    root.rename(tmp_path / "away")
    try:
        read = command(home, "op", "file.read", "x")
        assert read.returncode == 1 and "hint: computer-linker doctor names the folder" in read.stderr, read.stderr
        assert str(root) in command(home, "doctor").stdout
        assert command(home, "doctor", "--fix").returncode in (0, 1)
        (tmp_path / "away").rename(root)
    finally:
        command(home, "stop")


def test_status_counts_the_requests_that_wait(tmp_path: Path) -> None:
    home, root = tmp_path / "home", tmp_path / "root"
    write_config(home, root, token="t" * 32)
    document = json.loads((home / "config.json").read_bytes())
    document["scopes"][0]["policy"] = {"confirm": "all"}
    (home / "config.json").write_text(json.dumps(document))
    write = {"scope": "app", "op": "file.write", "target": "x", "input": {"content": "1"}}
    try:
        refused = call_service(home, "computer_operation", write)
        assert refused["error"]["code"] == "confirm_required" and not (root / "x").exists(), refused
        assert json.loads(command(home, "status", "--json").stdout)["waiting"] == 1
        assert "1 for your answer: computer-linker approvals" in command(home, "status").stdout
    finally:
        command(home, "stop")

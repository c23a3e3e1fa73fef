"""No secret reaches the state folder or any view of the history, whatever argument it came in."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from computer_linker.model.history import VIEWS
from computer_linker.model.principal import Principal
from support.noise import noise
from support.road import Road, folder_scope

pytestmark = pytest.mark.anyio

WRAPPINGS = {
    "bearer header": "Authorization: Bearer {}",
    "basic header": "Authorization: Basic {}",
    "github": "ghp_{}",
    "github fine-grained": "github_pat_{}",
    "gitlab": "glpat-{}",
    "slack": "xoxb-{}",
    "aws id": "AKIA{}",
    "aws secret": "AWS_SECRET_ACCESS_KEY={}",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.{}.sig",
    "openai": "sk-{}",
    "anthropic": "sk-ant-api03-{}",
    "google": "AIza{}",
    "npm": "npm_{}",
    "stripe": "sk_live_{}",
    "password flag": "--password={}",
    "address": "https://user:{}@example.org/",
    "json": '{{"client_secret":"{}"}}',
    "environment": "PGPASSWORD={}",
    "cookie": "Cookie: session={}",
    "zero width": "sk-\u200b{}",
    "quotes inside": "tok''en={}",
    "newline": "x\npassword={}",
    "alone": "{}",
}

Call = dict[str, Any]


def every_position(value: str) -> list[Call]:
    """Calls that carry the value wherever a caller can put one. Most are refused; none may leave it behind."""
    return [
        {"op": "file.read", "target": value},
        {"op": "file.read", "target": f"folder/{value}/notes.txt"},
        {"op": "file.read", "target": f"../{value}"},
        {"op": "file.read", "target": "notes.txt", "options": {"encoding": value}},
        {"op": "file.read", "target": "notes.txt", "options": {value: 1}},
        {"op": "file.find", "target": ".", "input": {"pattern": value}},
        {"op": "file.search", "target": ".", "input": {"query": value}},
        {"op": "file.move", "target": "notes.txt", "input": {"destination": f"../{value}"}},
        {"op": "command.run", "target": ".", "input": {"command": ["echo", value]}},
        {"op": "command.run", "target": ".", "input": {"command": f"echo {value}"}},
        {"op": "command.run", "target": value, "input": {"command": ["echo", "x"]}},
        {"op": "command.run", "target": ".", "input": {"command": ["cat"], "stdin": value}},
        {"op": "command.run", "target": ".", "input": {"command": ["echo"], "env": {"A": value}}},
        {"op": "command.run", "target": ".", "input": {"command": [value]}},
        {"op": "command.read", "target": value},
        {"op": "git.log", "target": ".", "options": {"ref": value}},
        {"op": "git.show", "target": ".", "input": {"ref": value}},
        {"op": "codex.run", "target": ".", "input": {"prompt": value}},
        {"op": "package.run", "target": ".", "input": {"script": value}},
        {"op": "code.search_symbols", "target": ".", "input": {"query": value}},
        {"op": "history.timeline", "input": {"query": value}},
        {"op": "history.last", "options": {"cursor": value}},
        {"op": "desktop.type_text", "input": {"text": value}},
        {"op": "clipboard.write", "input": {"text": value}},
        {"op": "confirm.issue", "input": {"op": "file.write", "target": value, "input": {"content": value}}},
        {"op": "artifact.attach", "target": value, "input": {"kind": value}},
        {"op": value},
        {"op": f"file.{value}"},
        {"op": "file.read", "target": "notes.txt", "confirm": {"token": value}},
        {"op": "file.read", "target": {"path": value}},
        {"op": "file.read", value: value},
        {"op": "file.read", "target": "notes.txt", "scope": value},
        {"op": "batch.run", "input": {"operations": [{"op": "file.read", "target": value}, {"op": value}]}},
    ]


def stored(home: Path, secret: str) -> list[str]:
    """The files of the state folder that hold the secret in any common spelling."""
    spellings = {secret.encode(), secret.encode("utf-16-le"), secret.encode().hex().encode()}
    return [
        str(path.relative_to(home))
        for path in home.rglob("*")
        if path.is_file() and any(spelling in path.read_bytes() for spelling in spellings)
    ]


async def send(road: Road, call: Call) -> dict[str, Any]:
    reply = await road.app.dispatcher.call_wire({"scope": "app", **call}, LOCAL)
    return reply.envelope


LOCAL = Principal(id="local:tester", proof="local_user", session="session-1", connection="connection-1", client="tests")


async def views(road: Road) -> str:
    told = [await road.data(f"history.{view}", options={} if view == "verify" else {"limit": 500}) for view in VIEWS]
    return json.dumps(told, ensure_ascii=False)


@pytest.mark.parametrize("wrapping", WRAPPINGS)
async def test_a_secret_in_any_argument_is_nowhere_afterwards(tmp_path: Path, wrapping: str) -> None:
    (tmp_path / "root").mkdir()
    scope = folder_scope(tmp_path / "root", allowedCommands=["echo *", "echo", "cat", "cat *"], sandbox="off")
    async with Road.open(tmp_path, [scope]) as road:
        (road.root / "notes.txt").write_text("plain")
        secret = base64.b64encode(noise(18), b"Ab").decode()
        for call in every_position(WRAPPINGS[wrapping].format(secret)):
            await send(road, call)
        assert secret not in await views(road)
        assert stored(road.home, secret) == []
    assert stored(tmp_path / "home", secret) == []


async def test_a_secret_in_a_callers_own_names_is_nowhere_afterwards(tmp_path: Path) -> None:
    async with Road.open(tmp_path) as road:
        secret = base64.urlsafe_b64encode(noise(24)).decode()
        for name in (secret, f"client {secret}", f"token={secret}", f"a\n{secret}"):
            caller = Principal(id=name, proof="oauth", session=name, connection=name, client=name)
            await road.call("file.read", "notes.txt", principal=caller)
        assert secret not in await views(road)
    assert stored(tmp_path / "home", secret) == []


async def test_written_contents_are_not_in_the_history(road: Road) -> None:
    secret = base64.urlsafe_b64encode(noise(24)).decode()
    await road.data("file.write", "new.txt", input={"content": f"password={secret}"})
    await road.call("file.patch", "new.txt", input={"edits": [{"oldText": "nothing", "newText": secret}]})
    assert secret not in await views(road)
    assert not any(name.startswith("audit/") for name in stored(road.home, secret))


@pytest.mark.parametrize("name", ["SECRETfilename_password=SECRETfn.txt", "token:SECRETfn", "a/ghp_SECRETfn0123/b"])
async def test_a_secret_as_a_file_name_that_exists(road: Road, name: str) -> None:
    (road.root / name).parent.mkdir(parents=True, exist_ok=True)
    (road.root / name).write_text("x")
    await road.call("file.read", name)
    await road.call("file.stat", name)
    assert "SECRETfn" not in await views(road)
    assert stored(road.home, "SECRETfn") == []

"""A scope that is the home: what others execute is not written, what holds a login is not read, the rest is free."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from computer_linker.policy.names import TOOL_PATHS, is_protected, is_sensitive
from computer_linker.policy.trusted_places import listed
from policy.home_layout import COMMANDS_READ, READABLE, VERDICTS, WRITABLE
from support.road import FOLDER_CAPABILITIES
from support.service import TOKEN, Http, serving

LOOKED_INTO = (".codex/", ".claude/", ".gemini/", ".docker/", ".cache/")
"""Folders whose secrets only a deeper look closes; the sandbox's own tests are about them."""
TRY = """
import json, sys
told = {}
for path in json.load(sys.stdin):
    told[path] = [True, True]
    try:
        told[path][1] = "SECRET-TEXT" in open(path).read()
    except OSError:
        told[path][1] = False
    try:
        open(path, "a").close()
    except OSError:
        told[path][0] = False
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("person").joinpath("me")
    for _, path in VERDICTS:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("SECRET-TEXT\n")
        (folder / path).chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def link(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Http]:
    """A real service of a user whose home is this folder, with scopes for the home, its parent and a project in it."""
    scopes: list[dict[str, Any]] = [
        {"id": name, "type": "folder", "roots": [str(root)], "capabilities": FOLDER_CAPABILITIES, "policy": policy}
        for name, root, policy in (
            ("home", home, {"allowedCommands": ["*"]}),
            ("above", home.parent, {"allowedCommands": ["*"]}),
            ("project", home / "code" / "project", {"allowedCommands": ["*"]}),
        )
    ]
    env = {"HOME": str(home), "PATH": f"{home}/.tools-on-path:/usr/bin:/bin"}
    with serving(tmp_path_factory.mktemp("service"), token=TOKEN, scopes=scopes, env=env) as service:
        opened = service.http()
        yield opened
        opened.close()


def call(link: Http, scope: str, op: str, target: str, **parts: Any) -> dict[str, Any]:
    return link.control("computer_operation", scope=scope, op=op, target=target, **parts)


@pytest.mark.parametrize(("scope", "prefix"), [("home", ""), ("above", "me/")])
def test_file_operations_refuse_exactly_what_the_table_says(link: Http, home: Path, scope: str, prefix: str) -> None:
    wrong = []
    for verdict, path in VERDICTS:
        written = call(link, scope, "file.write", prefix + path, input={"content": "SECRET-TEXT\n"})
        read = call(link, scope, "file.read", prefix + path)
        for allowed, answer in ((verdict[0] == "w", written), (verdict[1] == "r", read)):
            if answer["ok"] is not allowed or (not allowed and answer["error"]["code"] != "permission_denied"):
                wrong.append((path, answer["op"], answer.get("error")))
    assert wrong == []
    assert all((home / path).read_text() == "SECRET-TEXT\n" for _, path in VERDICTS)


def test_commands_are_held_to_the_same_table(link: Http, home: Path) -> None:
    given = {"command": ["/usr/bin/python3", "-c", TRY], "stdin": json.dumps([path for _, path in VERDICTS])}
    ran = call(link, "home", "command.run", ".", input=given)
    assert ran["ok"], ran["error"]
    assert ran["data"]["exitCode"] == 0, ran["data"]["stderr"]
    if "protected names" not in ran["data"]["boundary"]:
        pytest.skip("no boundary here closes names")
    told = json.loads(ran["data"]["stdout"])
    wrong = [
        (path, told[path])
        for _, path in VERDICTS
        if not path.startswith(LOOKED_INTO)
        and told[path] != [path in WRITABLE, path in READABLE or path in COMMANDS_READ]
    ]
    assert wrong == []


def test_a_search_of_the_home_shows_no_secret(link: Http) -> None:
    found = call(link, "home", "file.search", ".", input={"query": "SECRET-TEXT"}, options={"includeHidden": True, "maxResults": 1000, "gitignore": False})  # fmt: skip
    shown = {match["path"] for match in found["data"]["matches"]}
    assert shown and shown <= set(READABLE)


def test_in_a_project_ordinary_names_are_free(link: Http) -> None:
    for path in ("bin/x", "go/bin/x", "n/bin/x", "miniconda3/x", "dotfiles/x", "library/services/x.py", ".bin/x"):
        made = call(link, "project", "file.write", path, input={"content": "x"}, options={"createParents": True})
        assert made["ok"], (path, made)


def test_folders_of_the_search_path_are_not_written_there_or_not(link: Http, home: Path) -> None:
    refused = call(link, "home", "file.write", ".tools-on-path/git", input={"content": "x"}, options={"createParents": True})  # fmt: skip
    assert refused["error"]["code"] == "permission_denied"
    moved = call(link, "home", "file.move", "notes.txt", input={"destination": ".tools-on-path/git"}, options={"createParents": True})  # fmt: skip
    assert moved["error"]["code"] == "permission_denied"
    assert not (home / ".tools-on-path").exists() and (home / "notes.txt").exists()


def test_what_every_sandbox_shows_is_protected_and_holds_no_secret() -> None:
    secrets = [place.path for place in listed() if place.kind == "secret"]
    for path in TOOL_PATHS:
        assert is_protected((*path, "x")) or path == ("go", "bin"), path
        assert not is_sensitive((*path, "x")), path
        assert not [secret for secret in secrets if secret[: len(path)] == path], path


def test_every_place_says_why_and_where_that_is_written() -> None:
    for place in listed():
        assert place.why and place.source and place.path == tuple(name.lower() for name in place.path)

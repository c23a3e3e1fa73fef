"""The same swaps of a folder for a link out, against the other verbs: copies, undo, code, git, evidence, commands."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from attacks.ground import CANARY, Field, battlefield
from attacks.test_races import SECONDS, folders, swapping
from support.repositories import git

REQUESTS: dict[str, tuple[str, str, Any, dict[str, Any], dict[str, Any]]] = {
    "mkdir": ("app", "file.mkdir", "d/new/deep", {}, {"parents": True}),
    "copy in": ("app", "file.copy", "plain.txt", {"destination": "d/copied.txt"}, {"overwrite": True}),
    "move in": ("app", "file.move", "plain.txt", {"destination": "d/moved.txt"}, {"overwrite": True}),
    "append": ("app", "file.write", "d/f.txt", {"content": "pwn"}, {"append": True}),
    "patch new": ("app", "file.patch", None, {"diff": "--- /dev/null\n+++ b/d/new.txt\n@@ -0,0 +1 @@\n+pwn\n"}, {}),
    "stat": ("app", "file.stat", "d/secret.txt", {}, {"hash": True}),
    "read many": ("app", "file.read_many", None, {"paths": ["d/secret.txt"] * 20}, {}),
    "attach": ("app", "artifact.attach", "d/secret.txt", {}, {}),
    "outline": ("app", "code.outline", "d/s.py", {}, {}),
    "symbols": ("app", "code.search_symbols", "d", {"query": "CANARY"}, {}),
    "diff": ("app", "git.diff", "d", {}, {}),
    "stage": ("app", "git.stage", ".", {"paths": ["d/f.txt"]}, {}),
    "status": ("app", "git.status", "d", {}, {}),
    "cwd": ("execsh", "command.run", "d", {"command": ["sh", "-c", "cat secret.txt; ls; echo pwn > f.txt"]}, {}),
    "package": ("execsh", "package.list", "d", {}, {}),
}


@pytest.fixture(scope="module")
def field(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Field]:
    with battlefield(tmp_path_factory.mktemp("more-races")) as found:
        yield found


def _lay(field: Field, scope: str) -> tuple[Any, Any]:
    inside, link = folders(field)
    (field.ground.root / "plain.txt").write_text("plain")
    (inside / "s.py").write_text("def fine(): pass\n")
    (field.ground.out / "s.py").write_text(f"def {CANARY.replace('-', '_')}(): pass\n# {CANARY}\n")
    git(field.ground.root, "init", "-q")
    git(field.ground.root, "add", "d/f.txt")
    git(field.ground.root, "commit", "-qm", "first")
    if scope == "execsh":
        for one in (inside, link):
            one.rename(field.ground.exec / one.name)
        inside, link = field.ground.exec / "d", field.ground.exec / "e"
    return inside, link


@pytest.mark.parametrize("case", REQUESTS)
def test_a_folder_swapped_for_a_link_out_gives_and_takes_nothing(field: Field, case: str) -> None:
    scope, op, target, given, options = REQUESTS[case]
    inside, link = _lay(field, scope)
    before = field.ground.picture("$OUT")
    end = time.monotonic() + SECONDS
    with swapping(inside, link):
        while time.monotonic() < end:
            answer = field.call(scope, op, target, input=given, options=options)
            assert CANARY not in answer.text and CANARY.replace("-", "_") not in answer.text
            assert "outside-name.txt" not in answer.text
            if answer.ok and op == "artifact.attach":
                kept = field.call("app", "artifact.read", answer.data["artifact"]["id"])
                assert CANARY not in kept.text
    assert field.ground.picture("$OUT") == before


def test_what_is_taken_back_goes_to_no_other_place(field: Field) -> None:
    """Undo while the folder is swapped: it goes back beneath the root, or it is refused."""
    inside, link = _lay(field, "app")
    before, made = field.ground.picture("$OUT"), []
    for number in range(20):
        wrote = field.call("app", "file.write", "d/f.txt", input={"content": f"turn {number}"})
        made.append(wrote.envelope["operationId"])
    with swapping(inside, link):
        for operation in reversed(made):
            answer = field.call("app", "file.undo", input={"operationId": operation})
            assert CANARY not in answer.text
    assert field.ground.picture("$OUT") == before

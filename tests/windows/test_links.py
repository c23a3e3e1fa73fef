"""Names that lead out of a scope on Windows: nothing outside is read, listed or changed.

Wine before version 9 has no reparse points. It follows links of the system below it without a word, so these tests make such
links: a file that was opened is somewhere else than its name says, and the check of an open handle's final path must see it.
file.search is not among them: ripgrep asks wine itself, for which such a link is a folder. Nor are names that are swapped
meanwhile: wine resolves, renames and removes by the path, where Windows works by the handle, so that a race there shows wine's own.
"""

import json
from typing import Any

import pytest

from windows import wine
from windows.machine import Client, Machine

pytestmark = pytest.mark.skipif(wine.program() is None, reason=wine.MISSING)
CANARY = "CANARY-OUT-51c2"


class Place:
    """A folder of the scope with links, and the folder outside to which they lead."""

    def __init__(self, machine: Machine, name: str) -> None:
        self.name = name
        self.root = machine.work / name
        self.outside = machine.root / f"outside-{name}"
        for folder in (self.root / "d", self.outside):
            folder.mkdir(parents=True)
            (folder / "f.txt").write_text("old\n")
        (self.root / "d" / "secret.txt").write_text("inside")
        (self.outside / "secret.txt").write_text(CANARY)
        (self.root / "e").symlink_to(self.outside)
        (self.root / "file").write_text("inside")
        (self.root / "link").symlink_to(self.outside / "secret.txt")

    def is_untouched(self) -> bool:
        found = {path.name: path.read_text() for path in self.outside.iterdir()}
        return found == {"f.txt": "old\n", "secret.txt": CANARY}


ACTS: list[tuple[str, str, dict[str, Any]]] = [
    ("file.read", "e/secret.txt", {}),
    ("file.read", "link", {}),
    ("file.stat", "link", {"options": {"hash": True}}),
    ("file.list", "e", {}),
    ("file.write", "e/f.txt", {"input": {"content": "pwn"}}),
    ("file.create", "e/new.txt", {"input": {"content": "pwn"}}),
    ("file.mkdir", "e/made", {}),
    ("file.delete", "e/f.txt", {}),
    ("file.delete", "link", {}),
    ("file.move", "e/f.txt", {"input": {"destination": "taken"}}),
    ("file.copy", "e/secret.txt", {"input": {"destination": "copied"}}),
]


def test_a_link_that_wine_follows_is_refused_by_the_final_path(machine: Machine, client: Client) -> None:
    place = Place(machine, "linked")
    for op, target, parts in ACTS:
        answer = client.call(op, f"{place.name}/{target}", **_moved(place, parts))
        assert answer["ok"] is False, (op, target, answer)
        assert CANARY not in json.dumps(answer)
        assert place.is_untouched(), (op, target)
    tree = client.call("file.tree", place.name, options={"maxDepth": 10})
    assert tree["ok"] and f'"size": {len(CANARY)}' not in json.dumps(tree)
    assert not (machine.work / "copied").exists() and not (machine.work / "taken").exists()


def _moved(place: Place, parts: dict[str, Any]) -> dict[str, Any]:
    """The parts of a call, with a destination below the place."""
    given = dict(parts.get("input", {}))
    if "destination" in given:
        given["destination"] = f"{place.name}/{given['destination']}"
    return {**parts, **({"input": given} if given else {})}


def test_a_short_name_of_a_long_one_is_not_found(machine: Machine, client: Client) -> None:
    (machine.work / "a long name.environment").write_text(CANARY)
    short = machine.run(
        "-c",
        "import ctypes, sys; b = ctypes.create_unicode_buffer(300);"
        " ctypes.windll.kernel32.GetShortPathNameW(sys.argv[1], b, 300); print(b.value.rpartition(chr(92))[2])",
        f"{machine.there}\\work\\a long name.environment",
    ).stdout.strip()
    assert "~" in short, "wine gives every long name a short one"
    assert client.call("file.read", "a long name.environment")["data"]["content"] == CANARY
    for op in ("file.read", "file.stat", "file.delete"):
        assert client.call(op, short)["error"]["code"] == "not_found"
    assert (machine.work / "a long name.environment").read_text() == CANARY

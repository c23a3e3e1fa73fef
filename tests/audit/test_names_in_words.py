"""Names that clients choose, in the history's sentences: each is shown, as it is, and cannot say anything else."""

from pathlib import Path
from typing import Any

import pytest

from computer_linker.audit.phrases import filled
from computer_linker.audit.wording import described
from support.pair import events_of
from support.road import LOCAL, Road, folder_scope

pytestmark = pytest.mark.anyio
NAMES = {
    "plain.txt": "plain.txt",
    "[id].tsx": "[id].tsx",
    "{target}": "{target}",
    "x {scope}.sh": '"x {scope}.sh"',
    "ok.txt, approved by owner (terminal, once)": '"ok.txt, approved by owner (terminal, once)"',
    "a  b": '"a  b"',
    'a" done': '"a\' done"',
}
"""What a file is called, and how it is shown."""


async def _what(road: Road, op: str) -> str:
    [event] = await events_of(road, op)
    told: str = described(event).what  # type: ignore[arg-type]
    return told


@pytest.mark.parametrize("name", NAMES)
async def test_a_path_is_shown_as_it_is_and_apart(tmp_path: Path, name: str) -> None:
    async with Road.open(tmp_path, [folder_scope(tmp_path / "root")]) as road:
        await road.data("file.write", name, input={"content": "x"})
        await road.data("file.copy", name, input={"destination": f"to {name}"})
        await road.data("file.patch", input={"edits": [{"path": name, "oldText": "x", "newText": "y"}]})
        await road.data("file.move", name, input={"destination": "sub/" + name}, options={"createParents": True})
        shown = NAMES[name]
        assert await _what(road, "file.write") == f"wrote {shown}"
        quoted = f"to {name}".replace(chr(34), chr(39))
        assert await _what(road, "file.copy") == f'copied {shown} to "{quoted}"'
        assert await _what(road, "file.patch") == f"patched {shown}"
        moved = f'"sub/{shown[1:]}' if shown.startswith('"') else f"sub/{shown}"
        assert await _what(road, "file.move") == f"moved {shown} to {moved}"


@pytest.mark.parametrize("name", ["ghp_abcdefghijklmnopqrstuvwxyz0123456789", "[21 characters, 0123456789abcdef]"])
async def test_a_path_like_a_secret_is_named_by_its_digest(tmp_path: Path, name: str) -> None:
    async with Road.open(tmp_path, [folder_scope(tmp_path / "root")]) as road:
        await road.data("file.write", name, input={"content": "x"})
        assert (await _what(road, "file.write")).startswith(f'wrote "[{len(name)} characters, ')


async def test_the_host_of_a_connection_says_no_more_than_its_name(tmp_path: Path) -> None:
    async with Road.open(tmp_path, [folder_scope(tmp_path / "root")]) as road:
        facts: dict[str, Any] = {"host": "a.example, approved by owner", "port": 443}
        await road.app.dispatcher.note("network.connect", LOCAL, facts, "app")
        assert await _what(road, "network.connect") == 'connected to "a.example, approved by owner":443'


def test_facts_are_put_in_once() -> None:
    facts = {"a": "{b}", "b": "[{a}]", "c": ""}
    assert filled("did {a}[ and {b}][ not {c}]", facts.__getitem__) == ("did {b} and [{a}]", True)

"""Text entry on applications of the distribution: nothing is cleared blindly, and keys follow the text."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from computer_linker.computer.local.probe import this_computer
from computer_linker.registry.shapes import ELEMENTS
from computer_linker.registry.text import render
from support.desktop import Desktop, missing
from support.road import Road, computer_scope
from support.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.desktop]


@pytest.fixture
async def road(tmp_path: Path, desktop: Desktop) -> AsyncIterator[Road]:
    computer = this_computer(desktop.env)
    await computer.accessibility.applications()
    async with Road.open(tmp_path, scopes=[computer_scope()], computer=computer) as opened:
        yield opened


async def _window(road: Road, title: str) -> None:
    await road.data("desktop.wait_until", scope="desk", input={"condition": {"windowTitle": title}})


async def test_nothing_is_cleared_where_no_field_is_described(road: Road, desktop: Desktop, tmp_path: Path) -> None:
    if lacking := missing("xterm"):
        pytest.skip(f"not installed: {lacking}")
    file = tmp_path / "typed.txt"
    process = desktop.launch("xterm", "-T", "Blind", "-e", "sh", "-c", f"cat > {file}")
    await _window(road, "Blind")
    await road.data("desktop.type_text", scope="desk", input={"text": "first\n"})
    refused = await road.call(
        "desktop.type_text", scope="desk", input={"text": "second\n"}, options={"clearBefore": True}
    )
    assert refused["error"]["code"] == "conflict", refused
    await road.data("desktop.type_text", scope="desk", input={"text": "third\n"})
    await until(lambda: "third" in (file.read_text() if file.exists() else ""))
    assert file.read_text() == "first\nthird\n"
    desktop.end(process)


async def test_a_route_to_a_terminal_lets_keys_through_while_it_has_the_keyboard(
    road: Road, desktop: Desktop, tmp_path: Path
) -> None:
    if lacking := missing("xterm"):
        pytest.skip(f"not installed: {lacking}")
    file = tmp_path / "typed.txt"
    process = desktop.launch("xterm", "-T", "Routed", "-e", "sh", "-c", f"cat > {file}")
    await _window(road, "Routed")
    elsewhere = {"text": "lost", "route": {"window": "no such window"}}
    refused = await road.call("desktop.type_text", scope="desk", input=elsewhere)
    assert refused["error"]["code"] == "element_not_found", refused
    for route in ({"window": "Routed"}, {"app": "xterm"}, {"pid": process.pid}):
        typed = await road.call("desktop.type_text", scope="desk", input={"text": "here ", "route": route})
        assert typed["ok"], (route, typed)
    await road.data("desktop.press", scope="desk", input={"key": "enter", "route": {"window": "Routed"}})
    await until(lambda: file.exists() and file.read_text())
    assert file.read_text() == "here here here \n"
    desktop.end(process)


async def test_a_terminal_gets_characters_that_the_keyboard_lacks(road: Road, desktop: Desktop, tmp_path: Path) -> None:
    if lacking := missing("xterm", "xclip"):
        pytest.skip(f"not installed: {lacking}")
    file = tmp_path / "typed.txt"
    desktop.launch("sh", "-c", "printf kept | xclip -i -selection primary").wait(10)
    process = desktop.launch("xterm", "-u8", "-T", "Foreign", "-e", "sh", "-c", f"cat > {file}")
    await _window(road, "Foreign")
    typed = await road.call("desktop.type_text", scope="desk", input={"text": "Zoë Привет 你好 €"})
    assert (typed["ok"], typed["effect"]) == (True, "unverifiable"), typed
    await road.data("desktop.press", scope="desk", input={"key": "enter"})
    await until(lambda: file.exists() and file.read_text())
    assert file.read_text() == "Zoë Привет 你好 €\n"
    # What the person had selected is selected again.
    assert desktop.run("xclip", "-o", "-selection", "primary").stdout == b"kept"
    desktop.end(process)


async def test_keys_after_text_reach_the_same_field(road: Road, desktop: Desktop, tmp_path: Path) -> None:
    if lacking := missing("zenity"):
        pytest.skip(f"not installed: {lacking}")
    answer = tmp_path / "answer.txt"
    program = "import subprocess,sys; open(sys.argv[1],'wb').write(subprocess.run(sys.argv[2:],stdout=-1).stdout)"
    form = ["zenity", "--forms", "--title=Two fields", "--text=x", "--add-entry=First", "--add-entry=Second"]
    desktop.launch(sys.executable, "-c", program, str(answer), *form)
    await _window(road, "Two fields")
    condition = {"selectorExists": {"role": "textbox"}}
    found = await road.data("desktop.wait_until", {"app": "zenity"}, scope="desk", input={"condition": condition})
    fields = [one["ref"] for one in found["elements"]]
    # The lower one: the upper has the focus from the start.
    bounds = {ref: await _top(road, ref) for ref in fields}
    lower = max(fields, key=lambda ref: bounds[ref])
    typed = await road.call(
        "desktop.type_text", lower, scope="desk", input={"text": "Zoë 你好"}, options={"clearBefore": True}
    )
    assert (typed["effect"], typed["warnings"]) == ("confirmed", []), typed
    await road.data("desktop.press", scope="desk", input={"key": "z"})
    ok = {"selector": {"role": "button", "name": "OK"}, "route": {"app": "zenity"}}
    await road.data("desktop.click", ok, scope="desk")
    await until(lambda: answer.exists() and answer.read_text())
    assert answer.read_text() == "|Zoë 你好z\n"


async def _top(road: Road, ref: str) -> float:
    tree = await road.data("ui.tree", "zenity", scope="desk", options={"maxDepth": 32})
    (top,) = [one["bounds"]["y"] for one in tree["nodes"] if one["ref"] == ref]
    return float(top)


async def test_a_file_dialog_is_short_for_a_model(road: Road, desktop: Desktop, tmp_path: Path) -> None:
    if lacking := missing("zenity"):
        pytest.skip(f"not installed: {lacking}")
    folder = tmp_path / "files"
    folder.mkdir()
    for number in range(12):
        (folder / f"document {number}.txt").write_text("x")
    process = desktop.launch("zenity", "--file-selection", "--title=Pick one", f"--filename={folder}/")
    await _window(road, "Pick one")
    condition = {"selectorExists": {"role": "cell", "name": "document 11.txt"}}
    await road.data("desktop.wait_until", {"app": "zenity"}, scope="desk", input={"condition": condition})
    tree = await road.data("ui.tree", "zenity", scope="desk", options={"maxDepth": 32})
    text = render(tree, ELEMENTS)
    assert len(text) <= 6_000, text
    assert all(f'"document {number}.txt"' in text for number in range(12)), text
    assert [node for node in tree["nodes"] if node["role"] == "table-cell" and not node["name"]] == []
    desktop.end(process)

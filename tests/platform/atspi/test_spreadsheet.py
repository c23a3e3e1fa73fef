"""Cells of a real spreadsheet: one is written or emptied, and the saved file says that all others stayed as they were."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest

from computer_linker.computer.local.probe import this_computer
from support.desktop import Desktop, missing
from support.road import Road, computer_scope
from support.sheets import is_whole, sheet_cells, sheet_document
from support.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.desktop]

ROWS = [["alpha", "keep B1", "keep C1"], ["keep A2", "keep B2", "keep C2"]]


@dataclass
class Sheet:
    """A document open in LibreOffice Calc. `cells` is what its file holds, never what the service says."""

    road: Road
    file: Path

    async def ref(self, name: str) -> str:
        condition = {"selectorExists": {"role": "cell", "name": name}}
        found = await self.road.data(
            "desktop.wait_until",
            {"app": "soffice"},
            scope="desk",
            input={"condition": condition},
            options={"timeoutSeconds": 50},
        )
        return str(found["elements"][0]["ref"])

    def cells(self) -> list[list[str]]:
        return sheet_cells(self.file)

    async def saved(self, fits: Callable[[list[list[str]]], bool]) -> list[list[str]]:
        """Save with the application's own shortcut and give the cells of the file once it was written."""
        written = self.file.stat().st_mtime_ns
        await self.road.data("desktop.hotkey", scope="desk", input={"keys": ["ctrl", "s"]}, options={"verify": False})
        with anyio.move_on_after(20):
            await until(lambda: self.file.stat().st_mtime_ns != written and is_whole(self.file) and fits(self.cells()))
        return self.cells()


@pytest.fixture
async def sheet(tmp_path: Path, desktop: Desktop) -> AsyncIterator[Sheet]:
    if lack := missing("soffice"):
        pytest.skip(f"not installed: {', '.join(lack)} (libreoffice-calc and libreoffice-gtk3)")
    computer = this_computer(desktop.env)
    await computer.accessibility.applications()
    file = tmp_path / "sheet.fods"
    file.write_text(sheet_document(ROWS))
    async with Road.open(tmp_path, scopes=[computer_scope()], computer=computer) as road:
        place = f"-env:UserInstallation=file://{desktop.folder / 'office'}"
        process = desktop.launch("soffice", place, "--norestore", "--nologo", "--nolockcheck", str(file))
        yield Sheet(road, file)
        desktop.end(process)


async def test_emptying_one_cell_leaves_the_others(sheet: Sheet) -> None:
    cell = await sheet.ref("A1")
    reply = await sheet.road.call(
        "desktop.type_text", cell, scope="desk", input={"text": ""}, options={"clearBefore": True}
    )
    assert reply.get("effect") == "confirmed", reply.get("error", reply)
    assert await sheet.saved(lambda rows: rows[0][0] == "") == [["", "keep B1", "keep C1"], ROWS[1]]


async def test_a_cell_is_replaced_and_added_to(sheet: Sheet) -> None:
    cell = await sheet.ref("B1")
    # The column holds a text that begins alike: completion must not change what was asked for.
    reply = await sheet.road.call(
        "desktop.type_text", cell, scope="desk", input={"text": "keep 你好\nZoë"}, options={"clearBefore": True}
    )
    assert reply.get("effect") == "confirmed", reply.get("error", reply)
    reply = await sheet.road.call("desktop.type_text", await sheet.ref("C1"), scope="desk", input={"text": " more"})
    assert reply.get("effect") == "confirmed", reply.get("error", reply)
    rows = await sheet.saved(lambda rows: rows[0][2] == "keep C1 more")
    assert rows == [["alpha", "keep 你好\nZoë", "keep C1 more"], ROWS[1]]


async def test_a_number_is_replaced_and_emptied(sheet: Sheet) -> None:
    for text in ("5", "61", ""):
        reply = await sheet.road.call(
            "desktop.type_text",
            await sheet.ref("A1"),
            scope="desk",
            input={"text": text},
            options={"clearBefore": True},
        )
        assert (reply["ok"], reply.get("effect")) == (True, "confirmed"), reply
        rows = [[text, *ROWS[0][1:]], *ROWS[1:]]
        assert await sheet.saved(rows.__eq__) == rows


async def test_the_sheet_itself_is_not_cleared(sheet: Sheet) -> None:
    await sheet.road.data("desktop.click", await sheet.ref("A1"), scope="desk")
    # Without a target the focused element is the table, not a text field.
    reply = await sheet.road.call("desktop.type_text", scope="desk", input={"text": ""}, options={"clearBefore": True})
    assert reply["error"]["code"] == "conflict", reply
    assert await sheet.saved(lambda rows: True) == ROWS


async def test_cells_of_every_visible_row_are_elements(sheet: Sheet) -> None:
    cell = await sheet.ref("B2")
    reply = await sheet.road.call(
        "desktop.type_text", cell, scope="desk", input={"text": "changed"}, options={"clearBefore": True}
    )
    assert reply.get("effect") == "confirmed", reply.get("error", reply)
    assert await sheet.saved(lambda rows: rows[1][1] == "changed") == [ROWS[0], ["keep A2", "changed", "keep C2"]]
    await sheet.ref("D20")
    tree = await sheet.road.data("ui.tree", "soffice", scope="desk", options={"maxDepth": 32, "maxNodes": 5000})
    shown = [node["name"] for node in tree["nodes"] if node["role"] == "table-cell"]
    # Empty cells are found by a selector and left out of the tree, but for the one with the focus.
    assert {"A1", "B2", "C2"} <= set(shown) and len(shown) <= 7, shown
    menus = [node["name"] for node in tree["nodes"] if node["role"] == "menu"]
    assert menus.count("File") == 1, menus

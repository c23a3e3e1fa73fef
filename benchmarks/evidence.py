"""Evidence: keeping an artifact and reading a page, against the plain calls they cannot be quicker than."""

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from benchmarks.ratio import Ratio, compared, in_a_folder
from support.pages import FORM, needed, preparation_with
from support.road import Road, folder_scope

_SIZE = 8_000_000


def run() -> list[Ratio]:
    """All figures of the family."""
    return in_a_folder(_run)


async def _run(folder: Path) -> list[Ratio]:
    (folder / "root").mkdir()
    scope = folder_scope(folder / "root", "app", allowedCommands=["agent-browser *"])
    async with Road.open(folder, [scope]) as road:
        figures = [await _attach(road, folder)]
        try:
            program = needed() / "agent-browser"
        except pytest.skip.Exception as missing:
            print(f"  no figure for the browser: {missing}")
            return figures
        with tempfile.TemporaryDirectory(prefix="bench-") as sockets:
            return [*figures, await _page_text(road, [str(program), "--json"], folder, sockets)]


async def _attach(road: Road, folder: Path) -> Ratio:
    numbers = iter(range(1_000_000))

    def fresh(name: str) -> Path:
        path = road.root / name
        path.write_bytes(next(numbers).to_bytes(8, "big") * (_SIZE // 8))
        return path

    async def ours() -> None:
        await road.data("artifact.attach", fresh("mine.bin").name, input={"kind": "document"})

    def limit() -> None:
        content = fresh("theirs.bin").read_bytes()
        place = folder / hashlib.sha256(content).hexdigest()
        with place.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if hashlib.sha256(place.read_bytes()).hexdigest() != place.name:
            raise RuntimeError("not what was written")

    mine, theirs = await compared(9, ours, limit)
    return Ratio("artifact.attach of 8 MB: read, digest, synced copy, read back", mine, theirs, 2.0)


async def _page_text(road: Road, program: list[str], folder: Path, sockets: str) -> Ratio:
    """The same four questions, asked of agent-browser by its own command outside any boundary."""
    (road.root / "form.html").write_text(FORM)
    preparation_with(road.app)
    await road.data("browser.open", "form.html")
    environment = {
        "HOME": str(folder), "PATH": "/usr/bin:/bin", "AGENT_BROWSER_EXECUTABLE_PATH": "/usr/bin/chromium",
        "AGENT_BROWSER_SOCKET_DIR": sockets,
    }  # fmt: skip

    def ask(*words: str, given: str = "") -> None:
        subprocess.run(
            [*program, *words], env=environment, input=given, text=True, capture_output=True, timeout=60, check=True
        )

    questions = '[["snapshot"], ["get", "url"], ["get", "title"]]', '[["get", "text", "body"]]'

    def limit() -> None:
        for one in questions:
            ask("batch", "--omit-command", given=one)

    async def ours() -> None:
        await road.data("browser.text")

    try:
        ask("open", (road.root / "form.html").as_uri())
        mine, theirs = await compared(15, ours, limit)
    finally:
        ask("close")
    return Ratio(
        "browser.text, page checked and read", mine, theirs, 1.6, note="agent-browser's own command, same questions"
    )

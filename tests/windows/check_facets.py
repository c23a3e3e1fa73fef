"""Runs inside Windows Python (under wine, or on Windows): the Windows facets against a real Notepad, read back by messages."""

import ctypes
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from ctypes import wintypes
from typing import Any

import anyio

from computer_linker.computer.base import Computer
from computer_linker.computer.facets.clipboard import Clip
from computer_linker.computer.local.windows.desktop import provide_windows
from computer_linker.errors import LinkError
from computer_linker.model.geometry import Point, Rect, Window

TEXT = "Héllo 你好 € 😀\nsecond line"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20


class Notepad:
    """A Notepad window and its text, asked of the edit control itself."""

    def __init__(self, window: Window) -> None:
        self.id = window.id
        self._user32: Any = ctypes.WinDLL("user32")
        self._user32.FindWindowExW.restype = wintypes.HWND
        self._user32.FindWindowExW.argtypes = [wintypes.HWND, wintypes.HWND, wintypes.LPCWSTR, wintypes.LPCWSTR]
        self._user32.SendMessageW.argtypes = [wintypes.HWND, wintypes.UINT, wintypes.WPARAM, ctypes.c_void_p]
        self._edit = self._user32.FindWindowExW(int(window.id, 16), None, "Edit", None)

    @property
    def text(self) -> str:
        length = self._user32.SendMessageW(self._edit, 0x0E, 0, None)
        buffer = ctypes.create_unicode_buffer(length + 1)
        self._user32.SendMessageW(self._edit, 0x0D, length + 1, buffer)
        return buffer.value.replace("\r\n", "\n")

    async def holds(self, text: str) -> None:
        with anyio.fail_after(20):
            while self.text != text:
                await anyio.sleep(0.05)  # bounded above


async def find(computer: Computer, title: str) -> Window:
    with anyio.fail_after(60):
        while True:
            for window in await computer.windows.list():
                if title in window.title:
                    return window
            await anyio.sleep(0.1)  # bounded above


async def typing(computer: Computer, notepad: Notepad) -> None:
    await computer.windows.focus(notepad.id)
    await computer.keyboard.type_text(TEXT)
    await notepad.holds(TEXT)
    await computer.hotkey("ctrl", "a")
    await computer.press("delete")
    await notepad.holds("")


async def pasting(computer: Computer, notepad: Notepad) -> None:
    await computer.windows.focus(notepad.id)
    await computer.clipboard_set_text("Pasted Ω")
    await computer.hotkey("ctrl", "v")
    await notepad.holds("Pasted Ω")
    await computer.hotkey("ctrl", "a")
    await computer.press("backspace")
    await notepad.holds("")


async def clipboard(computer: Computer, notepad: Notepad) -> None:
    await computer.clipboard_set_text(TEXT)
    assert await computer.clipboard_text() == TEXT
    await computer.clipboard.write(Clip({"image/png": PNG}))
    assert await computer.clipboard.types() == ["image/png"]
    assert (await computer.clipboard.read("image/png") or b"")[: len(PNG)] == PNG


async def windows(computer: Computer, notepad: Notepad) -> None:
    wanted = Rect(x=120, y=140, width=500, height=300)
    assert (await computer.windows.place(notepad.id, wanted)).bounds == wanted
    focused = await computer.windows.focus(notepad.id)
    assert focused.is_focused
    assert focused.process.lower() == "notepad.exe"
    found = await computer.windows.at(Point(x=300, y=300))
    assert found is not None
    assert found.pid == focused.pid
    for bad in ("0x1", "nonsense", ""):
        try:
            await computer.windows.focus(bad)
        except LinkError as error:
            assert error.code in ("not_found", "invalid_request")
        else:
            raise AssertionError(bad)


async def screen(computer: Computer, notepad: Notepad) -> None:
    displays = await computer.screen.displays()
    assert displays[0].is_primary
    whole = await computer.screen.capture()
    assert len(whole.data) == whole.width * whole.height * 4
    assert len(set(whole.data)) > 1
    alone = await computer.screen.capture_window(notepad.id)
    assert (alone.width, alone.height) == (500, 300)


async def pointer(computer: Computer, notepad: Notepad) -> None:
    await computer.pointer.move(Point(x=321, y=234))
    at = await computer.pointer.position()
    assert abs(at.x - 321) <= 1
    assert abs(at.y - 234) <= 1
    await computer.windows.focus(notepad.id)
    await computer.keyboard.type_text("one two")
    await notepad.holds("one two")
    await computer.click(Point(x=140, y=150), count=2)
    await computer.keyboard.type_text("X")
    with anyio.fail_after(20):
        while "X" not in notepad.text:
            await anyio.sleep(0.05)  # bounded above
    assert notepad.text.startswith("X"), notepad.text
    await computer.hotkey("ctrl", "a")
    await computer.press("delete")
    await notepad.holds("")


async def processes(computer: Computer, notepad: Notepad) -> None:
    listed = {process.pid: process for process in await computer.facts.processes()}
    own = listed[os.getpid()]
    assert own.is_own and own.name.lower() == "python.exe" and own.cpu_seconds > 0 and own.memory_bytes > 1_000_000, own
    assert own.started_at[:4] >= "2024"
    (editor,) = [process for process in listed.values() if process.name.lower() == "notepad.exe"]
    assert editor.parent == os.getpid()


async def closing(computer: Computer, notepad: Notepad) -> None:
    assert await computer.windows.close(notepad.id)


CHECKS: list[Callable[[Computer, Notepad], Awaitable[None]]] = [
    windows, screen, typing, pasting, clipboard, pointer, processes, closing,
]  # fmt: skip


async def main() -> int:
    computer = Computer()
    provide_windows(computer)
    process = subprocess.Popen(["notepad.exe"])
    failed = 0
    try:
        notepad = Notepad(await find(computer, "Notepad"))
        for check in CHECKS:
            started = time.perf_counter()
            try:
                await check(computer, notepad)
                print(f"ok {check.__name__} {time.perf_counter() - started:.2f}s", flush=True)
            except Exception as error:  # each check is told by itself
                failed += 1
                print(f"FAILED {check.__name__}: {type(error).__name__} {error}", flush=True)
    finally:
        process.kill()
    return failed


if __name__ == "__main__":
    sys.exit(anyio.run(main))

"""Finds the echo of typed text in a terminal's output, so that it is not taken for the program's answer."""

import re
from dataclasses import dataclass

from computer_linker.computer.facets.processes import Echo
from computer_linker.providers.processes.ring import Ring

ESCAPES = re.compile(rb"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][0-9A-B]|[=>78])")
_MAX_TYPED = 4096
_MAX_OPEN = 16
_MAX_KNOWN = 256
_GIVE_UP = 65_536
"""An echo is not searched further behind the place where the text was typed."""


@dataclass(slots=True)
class _Typed:
    at: int
    """Where the output ended when it was typed."""
    text: bytes
    by_terminal: bool


class Echoes:
    """The echoes in one process's output."""

    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        self._open: list[_Typed] = []
        self._spans: list[tuple[int, int]] = []

    def typed(self, data: bytes, echo: Echo) -> None:
        """Expect the echo of this text from here on."""
        if echo == "none" or not data or len(data) > _MAX_TYPED:
            return
        self._open = [*self._open, _Typed(self._ring.end, data, echo == "terminal")][-_MAX_OPEN:]

    def without(self, since: int, most: int) -> bytes:
        """The output since a cursor, at most its last `most` bytes, without the echoes; half an echo is left out too."""
        begin = max(since, self._ring.start, self._ring.end - most)
        end = self._resolve()
        kept, at = b"", begin
        for first, last in sorted(self._spans):
            if last <= at or first >= end:
                continue
            kept += self._ring.between(at, first)
            at = max(at, last)
        return kept + self._ring.between(at, end)

    def _resolve(self) -> int:
        """Find open echoes; returns where the output ends, or where an echo begins that is not complete yet."""
        ring, end = self._ring, self._ring.end
        for typed in list(self._open):
            start = max(typed.at, ring.start, *(last for _, last in self._spans), 0)
            raw = ring.between(start, min(ring.end, start + _GIVE_UP))
            found = _by_terminal(raw, typed.text) if typed.by_terminal else _by_program(raw, typed.text)
            if found is not None and found[1] < 0:
                end = min(end, start + found[0])
                break
            if found is not None:
                self._spans = [*self._spans, (start + found[0], start + found[1])][-_MAX_KNOWN:]
            if found is not None or not typed.by_terminal or len(raw) >= _GIVE_UP:
                self._open.remove(typed)
        self._spans = [span for span in self._spans if span[1] > ring.start]
        return end


def _by_terminal(raw: bytes, text: bytes) -> tuple[int, int] | None:
    """Where a terminal's echo lies in the output: begin and end, an end of -1 for one that is not complete yet."""
    wanted = _as_echoed(text)
    at = raw.find(wanted)
    if at >= 0:
        return at, at + len(wanted)
    for size in range(min(len(wanted), len(raw)), 0, -1):
        if raw.endswith(wanted[:size]):
            return len(raw) - size, -1
    return None if raw else (0, -1)


def _by_program(raw: bytes, text: bytes) -> tuple[int, int] | None:
    """Where a line editor's echo ends that begins the output, with escape sequences between the characters."""
    wanted = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n").rstrip(b"\n")
    at = position = 0
    while position < len(wanted):
        if at >= len(raw):
            return 0, -1
        if (escape := ESCAPES.match(raw, at)) is not None:
            at = escape.end()
        elif raw[at] == wanted[position]:
            at, position = at + 1, position + 1
        elif raw[at] in b"\r\n\x08":
            at += 1
        else:
            return None
    return 0, at


def _as_echoed(text: bytes) -> bytes:
    """Typed bytes as a terminal echoes them: Enter as a new line, control characters as `^C`."""
    echoed = bytearray()
    for byte in text.replace(b"\r", b"\n"):
        if byte == 0x0A:
            echoed += b"\r\n"
        elif byte == 0x09 or (byte >= 0x20 and byte != 0x7F):
            echoed.append(byte)
        else:
            echoed += bytes((0x5E, byte ^ 0x40))
    return bytes(echoed)

"""The list at any width: nothing wider than the terminal, nothing left out, and no byte that the terminal would obey."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from computer_linker.approvals.terminal import WaitingRequest
from computer_linker.changes.difference import diff_lines
from computer_linker.cli.approval_text import format_request
from computer_linker.policy.visible_text import folded

ITEM = WaitingRequest.from_wire({
    "id": "ask_0123456789abcdef01234567", "op": "file.write", "scope": "app", "client": "claude-code/2.1", "principal": "local:me", "asker": "claude-code/2.1 (local:me)",
    "secondsLeft": 58, "details": ["notes.md: 10 bytes now, 12 bytes then", "-" + "old " * 40, "+" + "你好" * 60],
    "picture": "/home/me/.computer-linker/approvals/ask_0123456789abcdef01234567.png",
    "preview": "x" * 100 + "y" * 30 + "\n130 bytes, sha256 " + "0" * 64, "digest": "0" * 64,
})  # fmt: skip


def cells(line: str) -> int:
    return sum(2 if char in "你好" else 1 for char in line)


@pytest.mark.parametrize("columns", [20, 60, 100, 200])
def test_no_line_is_wider_than_the_terminal_and_nothing_is_lost(columns: int) -> None:
    lines = list(format_request(ITEM, columns))
    assert all(cells(line) <= max(columns, 30) for line, _ in lines)
    joined = "".join(line[4:] if line.startswith("    ") else line.removeprefix("  ") for line, _ in lines)
    for part in (*ITEM.details, "x" * 100 + "y" * 30, ITEM.id, ITEM.picture or "?", "0" * 64, "58 s left"):
        assert part in joined
    assert {colour for line, colour in lines if line.startswith("  -old")} == {"red"}


@pytest.mark.parametrize("width", [30, 78, 200])
@pytest.mark.parametrize(
    "text",
    [
        "$ npm install --save-dev typescript@5.4.2 @types/node@20.11.30 eslint-plugin-import --registry=http://packages.example.org",
        "     +" + "a sentence of a file that is longer than a line, " * 5,
        '{"input":{"content":"' + "some text of a request " * 9 + '"},"op":"file.write","options":{},"target":"a.txt"}',
        "names a.txt: 146 bytes, sha256 " + "0" * 24,
        "x" * 500 + " " + "y" * 500,
        " " * 90 + "z",
        "你好 " * 100,
        "",
    ],
)
def test_a_line_is_broken_between_words_and_keeps_every_character(text: str, width: int) -> None:
    lines = list(folded(text, width))
    assert all(cells(line) <= width for line in lines), lines
    indent = len(lines[1]) - len(lines[1].lstrip(" ")) if len(lines) > 1 else 0
    begun = min(len(text) - len(text.lstrip(" ")), width // 3) + 2
    assert "".join([lines[0], *(line[begun:] for line in lines[1:])]) == text and indent >= (begun if lines[1:] else 0)
    words = [word for word in text.split() if len(word) <= width // 3]
    assert all(any(word in line.split() for line in lines) for word in words), lines


def test_a_difference_shows_every_byte() -> None:
    lines = diff_lines("a\x1b.txt", b"one\r\ntwo\n", "one\nt\u202ew\u200bo\tx".encode())
    assert lines[0] == "a\\x1b.txt: 9 bytes now, 15 bytes then"
    assert lines[2:] == ["-one\\x0d", "-two", "+one", "+t\\u202ew\\u200bo\\x09x (no line end)"]


def test_what_is_no_text_or_too_long_is_counted_and_named_by_its_digest() -> None:
    binary = diff_lines("a.bin", None, b"\0\1\2")
    assert binary[0].startswith("a.bin: not there now, 3 bytes then") and "sha256 " in binary[-1]
    many = diff_lines("a.txt", b"", b"line\n" * 4000)
    assert len(many) < 100 and any("lines of the difference not shown" in line for line in many)
    long = diff_lines("a.txt", b"", b"x" * 100_000)
    assert all(len(line) < 500 for line in long) and "more characters" in long[-1]
    assert "too many lines to compare" in diff_lines("a.txt", b"", b"l\n" * 6000)[1]


@pytest.mark.parametrize(("environ", "draws"), [({"TERM": "xterm-kitty"}, True), ({"TERM": "xterm"}, False),
                                                ({"TERM": "xterm-kitty", "TMUX": "x"}, False)])  # fmt: skip
def test_a_picture_is_drawn_only_where_the_terminal_can(tmp_path: Path, environ: dict[str, str], draws: bool) -> None:
    picture = tmp_path / "one.png"
    picture.write_bytes(b"\x89PNG" + bytes(range(256)) * 40)
    code = "import sys; from computer_linker.cli.approvals import can_draw, draw\nif can_draw(): draw(sys.argv[1])"
    parent, child = pty.openpty()
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path), **environ}
    process = subprocess.Popen([sys.executable, "-c", code, str(picture)], env=env, stdout=child, stderr=child)
    os.close(child)
    seen = b""
    try:
        while data := os.read(parent, 65536):
            seen += data
    except OSError:
        pass
    os.close(parent)
    assert process.wait(30) == 0
    assert seen.startswith(b"\x1b_Ga=T,f=100,q=2,m=1;") is draws
    assert seen.rstrip().endswith(b"\x1b\\") is draws and (draws or seen == b"")

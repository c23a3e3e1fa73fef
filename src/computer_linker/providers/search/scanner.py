"""The search engine of last resort: walks and reads a tree in Python, and reports as ripgrep does. Runs as a child process."""

import base64
import json
import os
import stat
import sys
from collections import deque
from collections.abc import Iterator
from typing import Any

from computer_linker.errors import InvalidRequest
from computer_linker.providers.search.globs import compiled
from computer_linker.providers.search.ignores import Ignores, rules_above
from computer_linker.providers.search.patterns import Pattern

_BLOCK = 1 << 20
_OVERLAP = 1 << 12
_FIRST = 1 << 16
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_WIDE = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}


def walk(breadth: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """Every file below the working folder that the breadth allows, in order, with the folder it is open in."""
    top = os.open(".", _FOLDER)
    ignores = Ignores(top, rules_above(os.getcwd())) if breadth["gitignore"] else None  # noqa: PTH109
    glob = None if breadth["glob"] is None else compiled(breadth["glob"])
    stack: list[tuple[str, int]] = [("", top)]
    while stack:
        prefix, parent = stack.pop()
        if not prefix.endswith("/") and prefix:
            yield prefix, parent
            continue
        try:
            fd = parent if not prefix else os.open(prefix.rstrip("/"), _FOLDER, dir_fd=top)
        except OSError:
            continue
        stack += reversed(_entries(fd, prefix, top, ignores, glob, include_hidden=breadth["include_hidden"]))
        if prefix:
            os.close(fd)


def _entries(
    fd: int, prefix: str, top: int, ignores: Ignores | None, glob: Any, *, include_hidden: bool
) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    for entry in _sorted(fd):
        if entry.name.startswith(".") and not include_hidden:
            continue
        path = prefix + entry.name
        is_folder = entry.is_dir(follow_symlinks=False)
        if not is_folder and not entry.is_file(follow_symlinks=False):
            continue
        if ignores is not None and ignores.matches(path, is_folder=is_folder):
            continue
        if glob is not None:
            fits = glob.matches(path, is_folder=is_folder)
            if fits == glob.is_negated and (glob.is_negated or not is_folder):
                continue
        found.append((path + "/" if is_folder else path, top))
    return found


def _sorted(fd: int) -> list["os.DirEntry[str]"]:
    try:
        with os.scandir(fd) as entries:
            return sorted(entries, key=lambda entry: os.fsencode(entry.name))
    except OSError:
        return []


class FileScan:
    """One file: its lines in blocks, so that neither a long file nor a long line is held whole."""

    def __init__(
        self, shown: dict[str, str], fd: int, pattern: Pattern, before: int, after: int, *, is_named: bool
    ) -> None:
        self.shown = shown
        self.fd = fd
        self.pattern = pattern
        self.recent: deque[tuple[int, bytes]] = deque(maxlen=before)
        self.after = after
        self.owed = 0
        self.line = 0
        self.is_named = is_named
        self.is_binary = False
        self.has_match = False

    def run(self) -> None:
        """Report every match, then the end of the file if there was any."""
        carry = b""
        first = True
        chunks = _decoded_chunks(self.fd)
        for chunk in chunks:
            block = carry + chunk
            if first and not self.is_named and b"\0" in block[:_FIRST]:
                return
            first = False
            if b"\0" in block:
                self.is_binary = True
                if not self.is_named:
                    self._block(block[: block.index(b"\0")].rpartition(b"\n")[0] + b"\n")
                    carry = b""
                    break
                block = block.replace(b"\0", b"\n")
            whole, newline, carry = block.rpartition(b"\n")
            if newline:
                self._block(whole + newline)
            if len(carry) >= _BLOCK:
                carry = self._long_line(carry, chunks)
        if carry:
            self._block(carry)
        if self.has_match:
            _say({"type": "end", "data": {"path": self.shown, "binary_offset": 0 if self.is_binary else None}})

    def _block(self, block: bytes) -> None:
        lines = block.split(b"\n")
        if not lines[-1]:
            lines.pop()
        if not self.owed and not self.pattern.may_match(block):
            self.line += len(lines)
            if self.recent.maxlen:
                at = self.line - len(lines)
                self.recent.extend((at + 1 + i, line) for i, line in list(enumerate(lines))[-self.recent.maxlen :])
            return
        for line in lines:
            self.line += 1
            self._one(line)

    def _one(self, line: bytes) -> None:
        start = self.pattern.start_in(line)
        if start is None:
            if self.owed:
                self.owed -= 1
                self._report("context", self.line, line, 0)
            else:
                self.recent.append((self.line, line))
            return
        for number, text in self.recent:
            self._report("context", number, text, 0)
        self.recent.clear()
        self.has_match = True
        self._report("match", self.line, line, start)
        self.owed = self.after

    def _long_line(self, piece: bytes, chunks: Iterator[bytes]) -> bytes:
        """A line that fills a block: look at it piece by piece until it matches, then only for its end."""
        self.line += 1
        column = 0
        while True:
            end = piece.find(b"\n")
            here = piece if end < 0 else piece[:end]
            start = self.pattern.start_in(here)
            if start is not None:
                self._report_part(here, start, column)
                return piece[end + 1 :] if end >= 0 else _after_newline(chunks)
            if end >= 0:
                return piece[end + 1 :]
            column += len(here[:-_OVERLAP].decode("utf-8", "replace"))
            chunk = next(chunks, b"")
            if not chunk:
                return b""
            piece = here[-_OVERLAP:] + chunk

    def _report_part(self, here: bytes, start: int, column: int) -> None:
        self.has_match = True
        low = max(0, start - 400)
        column += len(here[:start].decode("utf-8", "replace")) + 1
        self._report("match", self.line, here[low : start + 1200], start - low, column)

    def _report(self, kind: str, line: int, text: bytes, start: int, column: int = 0) -> None:
        data: dict[str, Any] = {
            "path": self.shown,
            "lines": _text_of(text),
            "line_number": line,
            "submatches": [{"start": start}] if kind == "match" else [],
        }
        if column:
            data["column"] = column
        _say({"type": kind, "data": data})


def _after_newline(chunks: Iterator[bytes]) -> bytes:
    for chunk in chunks:
        end = chunk.find(b"\n")
        if end >= 0:
            return chunk[end + 1 :]
    return b""


def _decoded_chunks(fd: int) -> Iterator[bytes]:
    """The file's bytes as UTF-8, without a byte order mark."""
    chunk = os.read(fd, _BLOCK)
    if chunk[:2] in _WIDE:
        yield from _wide_chunks(fd, chunk[2:], _WIDE[chunk[:2]])
        return
    chunk = chunk.removeprefix(b"\xef\xbb\xbf")
    while chunk:
        yield chunk
        chunk = os.read(fd, _BLOCK)


def _wide_chunks(fd: int, chunk: bytes, encoding: str) -> Iterator[bytes]:
    import codecs

    decoder = codecs.getincrementaldecoder(encoding)("replace")
    while chunk:
        yield decoder.decode(chunk).encode("utf-8", "replace")
        chunk = os.read(fd, _BLOCK)


def _text_of(text: bytes) -> dict[str, str]:
    try:
        return {"text": text.decode("utf-8")}
    except UnicodeDecodeError:
        return {"bytes": base64.b64encode(text).decode()}


def _say(record: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(record, separators=(",", ":")) + "\n")


def scan_text(request: dict[str, Any]) -> None:
    """Search the working folder, or the file on stdin."""
    pattern = Pattern(request["pattern"], ignore_case=request["ignore_case"], fixed=request["fixed_strings"])
    before, after = request["before"], request["after"]
    if request["stdin"]:
        FileScan({"text": "<stdin>"}, 0, pattern, before, after, is_named=True).run()
        return
    for path, top in walk(request["breadth"]):
        try:
            fd = os.open(path, _FILE, dir_fd=top)
        except OSError:
            continue
        try:
            if stat.S_ISREG(os.fstat(fd).st_mode):
                FileScan(_text_of(os.fsencode(path)), fd, pattern, before, after, is_named=False).run()
        except OSError:
            continue
        finally:
            os.close(fd)


def list_names(request: dict[str, Any]) -> None:
    """Print the files of the working folder, each ended by NUL."""
    for path, _ in walk(request["breadth"]):
        sys.stdout.buffer.write(os.fsencode(path) + b"\0")


def main() -> int:
    request = json.loads(sys.argv[1])
    try:
        if request["job"] == "text":
            scan_text(request)
        else:
            list_names(request)
        sys.stdout.flush()
    except InvalidRequest as error:
        sys.stderr.write(f"error: {error.message}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

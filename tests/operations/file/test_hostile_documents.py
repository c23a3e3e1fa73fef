"""Hostile documents: each costs a clear error and nothing else, and the service goes on."""

import gzip
import io
import os
import resource
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest

from computer_linker.computer.base import Computer
from computer_linker.errors import LinkError
from computer_linker.model.scope import ScopePolicy
from computer_linker.providers.documents.decoder import Decoder
from computer_linker.providers.sandbox.sandbox import Sandbox
from support.documents import excel, office, package, pdf, row, word
from support.road import LOCAL, Road

pytestmark = pytest.mark.anyio
LAUGHS = (
    '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "ha">'
    + "".join(f'<!ENTITY {chr(98 + at)} "{f"&{chr(97 + at)};" * 10}">' for at in range(9))
    + "]>"
)


def bomb() -> bytes:
    """A Word document whose body unpacks to a gigabyte."""
    out = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(word("x"))) as old,
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as made,
    ):
        for name in old.namelist():
            if name != "word/document.xml":
                made.writestr(name, old.read(name))
        with made.open("word/document.xml", "w") as part:
            part.write(b"<w:document><w:body><w:p><w:r><w:t>")
            for _ in range(1024):
                part.write(b"a" * (1 << 20))
    return out.getvalue()


def huge_png() -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", 100_000, 100_000, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(bytes(100_000)))
        + chunk(b"IEND", b"")
    )


def looping_pdf() -> bytes:
    """A page tree that is its own child."""
    return pdf("x").replace(b"/Kids [3 0 R]", b"/Kids [2 0 R]")


def many_rows() -> bytes:
    """A sheet whose shared texts and rows name numbers that are not there."""
    return excel('<row r="1"><c r="A1" t="s"><v>99999999</v></c><c r="ZZZZ9" t="s"><v>-1</v></c></row>')


HOSTILE: dict[str, tuple[Any, set[str]]] = {
    "bomb.docx": (bomb, {"limit_exceeded", "timeout", "execution_failed"}),
    "laughs.docx": (
        lambda: office("word/document.xml", "wordprocessingml.document", {"word/document.xml": LAUGHS + "<w>&j;</w>"}),
        {"execution_failed"},
    ),
    "external.docx": (
        lambda: office(
            "word/document.xml",
            "wordprocessingml.document",
            {"word/document.xml": '<!DOCTYPE w [<!ENTITY x SYSTEM "file:///etc/passwd">]><w:p><w:t>&x;</w:t></w:p>'},
        ),
        {"execution_failed"},
    ),
    "deep.docx": (
        lambda: office("word/document.xml", "wordprocessingml.document", {"word/document.xml": "<a>" * 100_000}),
        {"limit_exceeded"},
    ),
    "huge.png": (huge_png, {"limit_exceeded"}),
    "cut.pdf": (lambda: pdf("x")[:200], {"execution_failed"}),
    "bad-cells.xlsx": (many_rows, {"invalid_request"}),
    "gzip.gz": (lambda: gzip.compress(bytes(512 << 20), 1), {"limit_exceeded"}),
    "overlap.zip": (lambda: package({"a": "x"})[:-10], {"execution_failed"}),
    "cut.png": (lambda: huge_png()[:40], {"execution_failed", "invalid_request"}),
    "not.epub": (lambda: package({"mimetype": "application/epub+zip"}), {"execution_failed"}),
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_file_costs_a_clear_error_and_nothing_else(name: str, road: Road) -> None:
    make, codes = HOSTILE[name]
    (road.root / name).write_bytes(make())
    answer = await road.call("file.read", name, options={"encoding": "document"})
    assert not answer["ok"] and answer["error"]["code"] in codes, answer.get("error")
    assert answer["error"]["message"].endswith(".") and "Traceback" not in answer["error"]["message"]
    assert [path.name for path in road.root.iterdir()] == [name]
    (road.root / "good.docx").write_bytes(word("still here"))
    assert (await road.data("file.read", "good.docx"))["content"] == "still here\n"


async def test_a_page_tree_that_is_its_own_child_ends(road: Road) -> None:
    (road.root / "loop.pdf").write_bytes(looping_pdf())
    answer = await road.call("file.read", "loop.pdf")
    assert not answer["ok"] or len(answer["data"]["content"]) < 1000


async def test_a_drawing_that_refers_to_files_shows_none_of_them(road: Road) -> None:
    image = pytest.importorskip("PIL.Image")
    pytest.importorskip("resvg_py")
    red = io.BytesIO()
    image.new("RGB", (10, 10), "red").save(red, "PNG")
    (road.root / "red.png").write_bytes(red.getvalue())
    (road.root / "a.svg").write_text(
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="10" height="10">'
        f'<image width="10" height="10" xlink:href="{road.root}/red.png"/></svg>'
    )
    (road.root / "b.svg").write_text(LAUGHS + '<svg xmlns="http://www.w3.org/2000/svg">&j;</svg>')
    call = {"scope": "app", "op": "file.read", "target": "a.svg", "options": {"encoding": "image"}}
    reply = await road.app.dispatcher.call_wire(call, LOCAL)
    shown = image.open(io.BytesIO(reply.attachments[0].data)).convert("RGBA")
    assert shown.getpixel((5, 5))[3] == 0
    assert await road.code("file.read", "b.svg", options={"encoding": "image"}) == "execution_failed"


async def test_the_decoder_reaches_neither_files_nor_network_nor_processes(road: Road, tmp_path: Path) -> None:
    """What a reader that a file has taken over could do: run in the same sandbox, it tries."""
    secret = tmp_path / "secret"
    secret.write_text("secret")
    computer = road.app.services.use(Computer)
    decoder = Decoder(computer, road.app.services.use(Sandbox))
    decoder.program = (
        "import json, os, socket\n"
        "def could(act):\n"
        "    try:\n        act()\n        return True\n    except OSError:\n        return False\n"
        f"print(json.dumps({{'read': could(lambda: open({str(secret)!r})), "
        f"'root': could(lambda: os.listdir({str(road.root)!r})), "
        "'udp': could(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 53))), "
        "'settings': could(lambda: open('/etc/passwd')), "
        "'tcp': could(lambda: socket.create_connection(('127.0.0.1', 22), 2)), "
        f"'signal': could(lambda: os.kill({os.getpid()}, 0)), "
        "'write': could(lambda: open('/tmp/x', 'w').write('x') and None or open('/usr/x', 'w'))}))"
    )
    fd = os.open(secret, os.O_RDONLY)
    try:
        found = await decoder.run(fd, {}, ScopePolicy())
    finally:
        os.close(fd)
    if found.boundary == "none":
        pytest.skip("not here: a kernel boundary")
    assert found.facts == dict.fromkeys(("read", "root", "udp", "settings", "tcp", "signal", "write"), False)


CHANGES = """
import json, mmap, os
again = "/proc/self/fd/0"
def rewrite():
    with mmap.mmap(os.open(again, os.O_RDWR), 0) as view:
        view[0:4] = b"EVIL"
tried = {
    "write": lambda: os.write(os.open(again, os.O_WRONLY), b"EVIL"),
    "rewrite": rewrite,
    "truncate": lambda: os.truncate(again, 0),
    "empty": lambda: os.open(again, os.O_RDONLY | os.O_TRUNC),
    "mode": lambda: os.chmod(again, 0o777),
    "mode by descriptor": lambda: os.fchmod(0, 0o777),
    "owner": lambda: os.chown(again, os.getuid(), os.getgid()),
    "time": lambda: os.utime(0, (1, 1)),
    "attribute": lambda: os.setxattr(0, "user.evil", b"x"),
    "link": lambda: os.link(again, "/tmp/link", follow_symlinks=True),
}
could = []
for name, act in tried.items():
    try:
        act()
        could.append(name)
    except OSError:
        pass
print(json.dumps({"could": could}))
"""


async def test_the_decoder_cannot_change_the_file_that_it_reads(road: Road) -> None:
    """Found: it opened its descriptor again for writing, past the read-only scope, undo and the history."""
    path = road.root / "a.pdf"
    path.write_bytes(b"GOOD" * 100)
    before = path.stat()
    decoder = Decoder(road.app.services.use(Computer), road.app.services.use(Sandbox))
    decoder.program = CHANGES
    fd = os.open(path, os.O_RDONLY)
    try:
        found = await decoder.run(fd, {}, ScopePolicy())
    finally:
        os.close(fd)
    if not found.boundary.startswith("bubblewrap"):
        pytest.skip("not here: bubblewrap")
    assert found.facts == {"could": []} and path.read_bytes() == b"GOOD" * 100
    after = path.stat()
    assert (after.st_mode, after.st_mtime_ns, after.st_ctime_ns) == (
        before.st_mode,
        before.st_mtime_ns,
        before.st_ctime_ns,
    )


@pytest.mark.parametrize("line", [b"\n", b"a\n"])
async def test_a_member_of_short_lines_takes_little_memory_and_time(road: Road, line: bytes) -> None:
    """Found: each line became an object of the service, so that a packed file of 64 KB took it gigabytes."""
    content = line * (48 << 20 >> len(line) - 1)
    (road.root / "a.zip").write_bytes(package({"lines.txt": content.decode()}))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = await road.data(
        "file.read", "a.zip", options={"member": "lines.txt", "maxBytes": 1000, "startLine": 1_000_000}
    )
    assert found["content"] == (line * 1000).decode()[:1000] and found["nextLine"] == 1_000_000 + 1000 // len(line)
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10 < 400


async def test_a_text_of_short_lines_in_another_charset_takes_little_memory(road: Road) -> None:
    (road.root / "a.txt").write_bytes(b"\xe4\n" * 9_000_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    options = {"charset": "latin-1", "maxBytes": 9, "startLine": 5_000_000}
    found = await road.data("file.read", "a.txt", options=options)
    assert found["content"] == "ä\n" * 3 and found["nextLine"] == 5_000_003
    tail = await road.data("file.read", "a.txt", options={"charset": "latin-1", "tailLines": 2})
    assert tail["content"] == "ä\nä\n" and tail["nextLine"] is None
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10 < 400


async def test_a_decoder_that_never_ends_is_stopped(road: Road) -> None:
    decoder = Decoder(road.app.services.use(Computer), road.app.services.use(Sandbox))
    decoder.program, decoder.time_s = "while True: pass", 1.0
    (road.root / "a").write_bytes(b"x")
    fd = os.open(road.root / "a", os.O_RDONLY)
    try:
        with pytest.raises(LinkError) as raised:
            await decoder.run(fd, {}, ScopePolicy())
    finally:
        os.close(fd)
    assert raised.value.code == "timeout"


async def test_a_sheet_of_many_rows_is_read_within_the_limits(road: Road) -> None:
    rows = "".join(row(number, "x" * 50, number) for number in range(1, 50_000))
    (road.root / "a.xlsx").write_bytes(excel(rows))
    found = await road.data("file.read", "a.xlsx", options={"maxBytes": 2000})
    assert len(found["content"]) < 2200 and found["truncated"]

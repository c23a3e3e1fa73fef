"""Real commands on a view: dropped, the folder is as before; kept, it is as if the command had run in it."""

import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from support.road import Road, folder_scope

pytestmark = pytest.mark.anyio

COMMANDS = [
    "rm -rf src",
    "sed -i s/one/ONE/ notes.txt src/a.c",
    "cc -o prog src/a.c && ./prog > out.txt",
    "make -s",
    "tar cf all.tar src notes.txt && rm -r src && mkdir again && tar xf all.tar -C again",
    "gzip -nk notes.txt; gzip -n data.bin",
    "chmod -R u+x,go-r src/deep; chmod 600 notes.txt",
    "for n in 1 2 3; do ln -s ../notes.txt links/$n; done; ln -sfn nowhere links/old",
    "mv notes.txt src/a.c; mv data.bin renamed.bin",
    "mv src moved && mkdir src && cp -a moved/deep src/",
    "mkdir d; mv notes.txt d/notes.txt; mv d/notes.txt d/other.txt",
    "rm notes.txt; mkdir notes.txt; echo inside > notes.txt/file",
    "rm -r src/deep; echo file > src/deep",
    "find . -name '*.txt' -delete; find src -type f -exec touch -d 2020-01-01 {} +",
    "touch -d 2001-02-03 notes.txt; touch new-empty; truncate -s 10 data.bin",
    'python3 -c \'import json; json.dump([1], open("made.json", "w"))\'',
    "python3 -m venv --without-pip env && env/bin/python -c 'print(1)' > ran.txt",
    "split -b 100 data.bin part-; cat part-* > whole.bin; rm part-*",
    "printf 'a\\r\\nb' > crlf.txt; printf '\\377\\376' > bytes.bin; mkdir -p 'a b/ü'; echo x > 'a b/ü/-n'",
    "cp -a src copy; rm -r copy/deep; sort -o notes.txt notes.txt; dd if=/dev/zero of=zeros bs=1k count=3 2>/dev/null",
    "python3 -c \"import os; os.setxattr('notes.txt', 'user.mark', b'1')\"",
    "rm -f nothing; true",
]
MAKEFILE = "out: src/a.c\n\tmkdir -p build\n\tcc -c -o build/a.o src/a.c\n\ttouch out\n"


def fill(root: Path) -> None:
    for folder in ("src/deep", "links"):
        (root / folder).mkdir(parents=True)
    (root / "notes.txt").write_text("one\ntwo\nthree\n")
    (root / "src/a.c").write_text("/* one */\nint main(void) { return 0; }\n")
    (root / "src/m.py").write_text("x = 1\n")
    (root / "src/deep/b.txt").write_text("b\n" * 50)
    (root / "data.bin").write_bytes(bytes(range(256)) * 4)
    (root / "Makefile").write_text(MAKEFILE)
    (root / "links/old").symlink_to("../notes.txt")
    for path in root.rglob("*"):
        # Archives and compiled files contain these.
        os.utime(path, ns=(10**18, 10**18), follow_symlinks=False)


def state(root: Path, *, times: bool = False) -> dict[str, Any]:
    """Names, kinds, modes, contents, link targets and attributes; modification times of files where asked for."""
    found: dict[str, Any] = {}
    for path in sorted(root.rglob("*")):
        about = path.lstat()
        content: Any = path.readlink() if path.is_symlink() else path.read_bytes() if path.is_file() else None
        marks = [] if path.is_symlink() else [name for name in os.listxattr(path) if name.startswith("user.")]
        when = about.st_mtime_ns if times and not path.is_dir() else None
        found[str(path.relative_to(root))] = (oct(about.st_mode), content, marks, when)
    return found


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def road(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Road]:
    place = tmp_path_factory.mktemp("real")
    (place / "root").mkdir()
    async with Road.open(place, [folder_scope(place / "root", allowedCommands=["*"])]) as opened:
        yield opened


async def run(road: Road, command: str, *, view: bool) -> dict[str, Any]:
    given = {"command": ["sh", "-c", command]}
    return await road.data("command.run", ".", input=given, options={"view": view, "timeoutSeconds": 60})


def begin(root: Path) -> None:
    for path in root.iterdir():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    fill(root)


@pytest.mark.parametrize("command", COMMANDS)
async def test_dropped_as_before_and_kept_as_a_bare_run(road: Road, command: str) -> None:
    root = road.root
    begin(root)
    before = state(root, times=True)
    dropped = await run(road, command, view=True)
    assert state(root, times=True) == before
    assert (await road.call("view.drop", dropped["view"]["viewId"]))["ok"] and state(root, times=True) == before
    viewed = await run(road, command, view=True)
    kept = await road.call("view.keep", viewed["view"]["viewId"])
    assert kept["ok"] and kept["data"]["refused"] == [], kept
    after = state(root)
    begin(root)
    bare = await run(road, command, view=False)
    assert bare["exitCode"] == viewed["exitCode"] == 0, (bare, viewed)
    assert after == state(root)

"""Closed names stay closed wherever a command moves them (B3), inside protected folders (B4), and so do sockets (B11)."""

import errno
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import anyio
import pytest

from support.road import Road, folder_scope

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed"),
]

CANARY = "CANARY-8d21"
EXCHANGE = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
failed = libc.renameat2(-100, sys.argv[1].encode(), -100, sys.argv[2].encode(), 2) != 0
print(ctypes.get_errno() if failed else 0)
"""


def boxed(root: Path, **policy: Any) -> list[dict[str, Any]]:
    return [folder_scope(root, **{"allowedCommands": ["*"], "sandbox": "required", **policy})]


async def sh(road: Road, script: str) -> dict[str, Any]:
    return await road.data("command.run", ".", input={"command": ["sh", "-c", script]})


async def renamed(road: Road, source: str, target: str) -> int:
    """The error number of a rename inside a command; 0 when it was done."""
    script = "import os,sys\ntry: os.rename(*sys.argv[1:])\nexcept OSError as e: print(e.errno)\nelse: print(0)"
    told = await road.data("command.run", ".", input={"command": ["/usr/bin/python3", "-c", script, source, target]})
    return int(told["stdout"])


def project(tmp_path: Path) -> Path:
    """A root with a repository and a secret in `sub`."""
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(root / "sub")], check=True)
    (root / "sub" / ".env").write_text(CANARY)
    return root


@pytest.mark.parametrize(
    "place", ["node_modules", ".venv", "venv", ".tox", ".cache", "__pycache__", "build/x", "target/y", "x/.vscode"]
)
async def test_a_rename_opens_nothing_to_the_next_command(tmp_path: Path, place: str) -> None:
    root = project(tmp_path)
    (root / place).mkdir(parents=True)
    async with Road.open(tmp_path, boxed(root)) as road:
        await sh(road, f"mv sub {place}/sub; cp -r sub {place}/copy; true")
        hook = "printf '#!/bin/sh\\ntouch ../PWNED ../../PWNED ../../../PWNED\\n' > $d/.git/hooks/pre-commit; chmod +x $d/.git/hooks/pre-commit"
        told = await sh(road, f"for d in sub {place}/sub; do cat $d/.env; {hook}; done; mv {place}/sub sub; true")
        assert CANARY not in told["stdout"]
    home = root / "sub" if (root / "sub").exists() else root / place / "sub"
    (home / "file").write_text("x")
    who = ["-c", "user.name=x", "-c", "user.email=x@y"]
    subprocess.run(["git", "-C", str(home), "add", "file"], check=True)
    subprocess.run(["git", "-C", str(home), *who, "commit", "-qm", "x"], check=True)
    assert not list(tmp_path.rglob("PWNED")) and not list(home.rglob("pre-commit"))


@pytest.mark.parametrize(
    "place", ["node_modules/p", ".venv/lib", "build/x/y", "vendor/a", "deep/" + "/".join("d" * 30)]
)
async def test_secrets_and_repositories_are_closed_in_every_folder(tmp_path: Path, place: str) -> None:
    inside = tmp_path / "root" / place
    (inside / ".git").mkdir(parents=True)
    (inside / ".git" / "config").write_text("[core]\n")
    (inside / "server.key").write_text(CANARY)
    async with Road.open(tmp_path, boxed(tmp_path / "root")) as road:
        told = await sh(road, f"cat {place}/server.key; echo x >> {place}/.git/config; mv {place} {place}2; true")
        assert CANARY not in told["stdout"]
        assert (inside / ".git" / "config").read_text() == "[core]\n"


@pytest.mark.parametrize("name", [".docker/config.json", ".vscode/.env", ".git/credentials", ".idea/a/b/id_rsa"])
async def test_secrets_inside_protected_folders_are_closed(tmp_path: Path, name: str) -> None:
    secret = tmp_path / "root" / name
    secret.parent.mkdir(parents=True)
    secret.write_text(CANARY)
    (secret.parent / "open.txt").write_text("open")
    async with Road.open(tmp_path, boxed(tmp_path / "root")) as road:
        assert await road.code("file.read", name) == "permission_denied"
        told = await sh(road, f"cat {name}; cat {secret.parent.relative_to(tmp_path / 'root')}/open.txt")
        assert told["stdout"] == "open"


async def test_a_held_folder_keeps_its_name_and_others_can_be_renamed(tmp_path: Path) -> None:
    root = project(tmp_path)
    (root / "plain").mkdir()
    (root / "deep" / "er").mkdir(parents=True)
    (root / "deep" / "er" / ".env").write_text(CANARY)
    async with Road.open(tmp_path, boxed(root)) as road:
        renames = (("sub", "a"), ("deep", "b"), ("deep/er", "deep/c"), ("plain", "d"), ("sub/.env", "sub/x"))
        assert [await renamed(road, *pair) for pair in renames] == [errno.EBUSY] * 3 + [0, errno.EBUSY]
        await sh(road, "touch deep/fresh deep/er/fresh")
        assert sorted(path.name for path in root.iterdir()) == ["d", "deep", "sub"]
        assert (root / "deep" / "fresh").exists() and (root / "deep" / "er" / "fresh").exists()


@pytest.mark.parametrize("pair", [("sub", "other"), ("sub/.git", "other"), ("other", "sub/.git/hooks")])
async def test_an_exchange_of_held_folders_is_refused(tmp_path: Path, pair: tuple[str, str]) -> None:
    root = project(tmp_path)
    (root / "other").mkdir()
    async with Road.open(tmp_path, boxed(root)) as road:
        argv = ["/usr/bin/python3", "-c", EXCHANGE, *pair]
        told = await road.data("command.run", ".", input={"command": argv})
        assert int(told["stdout"]) != 0
        assert (root / "sub" / ".git" / "hooks").is_dir() and list((root / "other").iterdir()) == []


async def test_a_second_name_of_a_secret_is_closed_too(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "a").mkdir(parents=True)
    (root / "b").mkdir()
    (root / "a" / ".env").write_text(CANARY)
    async with Road.open(tmp_path, boxed(root)) as road:
        assert CANARY not in (await sh(road, "cat a/.env b/*; ln a/.env b/notes; ln .env x; cat b/*; true"))["stdout"]
        os.link(root / "a" / ".env", root / "b" / "plain.txt")
        (root / "b" / "open.txt").write_text("open")
        assert (await sh(road, "cat b/plain.txt b/open.txt; cat a/.env"))["stdout"] == "open"


async def test_a_socket_in_a_root_is_closed_unless_the_network_is_granted(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "run").mkdir(parents=True)
    talk = "import socket,sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); print(s.recv(99).decode())"
    with socket.socket(socket.AF_UNIX) as server:
        here = os.getcwd()
        os.chdir(root / "run")
        try:
            server.bind("host.sock")
        finally:
            os.chdir(here)
        server.listen()
        server.settimeout(20)
        argv = ["/usr/bin/python3", "-c", talk, "run/host.sock"]
        async with Road.open(tmp_path, boxed(root)) as road:
            told = await road.data("command.run", ".", input={"command": argv})
            assert told["exitCode"] != 0 and "Error" in told["stderr"]
        async with Road.open(tmp_path, boxed(root, network=True)) as road:
            started = await road.data("command.start", ".", input={"command": argv})
            with server.accept()[0] as link:
                link.sendall(CANARY.encode())
            read = await road.data("command.read", started["processId"], options={"waitSeconds": 20})
            assert CANARY in str(read["chunks"])


async def test_a_program_may_still_use_sockets_of_its_own(tmp_path: Path) -> None:
    async with Road.open(tmp_path, boxed(tmp_path / "root")) as road:
        (road.root / "pool.py").write_text(
            "import multiprocessing as m\n"
            "def double(x): return 2 * x\n"
            "if __name__ == '__main__':\n"
            "    with m.get_context('forkserver').Pool(1) as pool: print(pool.map(double, [21]))\n"
        )
        told = await road.data("command.run", ".", input={"command": ["/usr/bin/python3", "pool.py"]})
        assert told["stdout"] == "[42]\n", told["stderr"]


async def test_a_hundred_closed_names_in_one_folder(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "certs").mkdir(parents=True)
    for number in range(100):
        (root / "certs" / f"{number}.key").write_text(CANARY)
    (root / "certs" / "readme").write_text("open")
    async with Road.open(tmp_path, boxed(root)) as road:
        told = await road.call("command.run", ".", input={"command": ["sh", "-c", "cat certs/*; touch certs/fresh"]})
        assert told["data"]["stdout"] == "open" and told["warnings"] == []
        assert (root / "certs" / "fresh").exists()


async def test_closed_names_with_long_paths_keep_no_command_from_starting(tmp_path: Path) -> None:
    root = tmp_path / "root"
    for number in range(100):
        folder = root.joinpath(*(f"{level}{'x' * 150}{number}" for level in range(4)))
        folder.mkdir(parents=True)
        (folder / ".env").write_text(CANARY)
    async with Road.open(tmp_path, boxed(root)) as road:
        told = await sh(road, "find . -name .env | wc -l; cat $(find . -name .env)")
        assert told["stdout"] == "100\n", told
        await refuses_a_long_order(road)


async def refuses_a_long_order(road: Road) -> None:
    """More than an order may hold is refused, and the next command runs."""
    command = {"command": ["/bin/true"], "env": {f"V{number}": "x" * 100_000 for number in range(100)}}
    told = await road.call("command.run", ".", input=command)
    assert not told["ok"] and told["error"]["code"] in ("limit_exceeded", "invalid_request"), told
    assert (await sh(road, "echo well"))["stdout"] == "well\n"


async def test_a_secret_deeper_than_a_path_can_be_is_closed(tmp_path: Path) -> None:
    """A command can go down step by step to where no path leads at once."""
    root = tmp_path / "root"
    root.mkdir()
    down = "import os\nfor _ in range(30):\n os.makedirs('d' * 200, exist_ok=True); os.chdir('d' * 200)\n"
    async with Road.open(tmp_path, boxed(root)) as road:
        for act in (f"open('.env', 'w').write({CANARY!r})", "print(open('.env').read())", "os.mkdir('x')"):
            argv = ["/usr/bin/python3", "-c", down + act]
            told = await road.call("command.run", ".", input={"command": argv})
            assert told["ok"] and CANARY not in told["data"]["stdout"], told
        assert (await sh(road, "echo well"))["stdout"] == "well\n"


async def test_too_many_repositories_make_their_folder_read_only(tmp_path: Path) -> None:
    root = tmp_path / "root"
    for number in range(1_000):
        (root / "many" / f"r{number}" / ".git").mkdir(parents=True)
    (root / "few" / ".git").mkdir(parents=True)
    async with Road.open(tmp_path, boxed(root)) as road:
        assert await renamed(road, "many/r1", "many/e") == errno.EROFS
        script = "touch many/a many/r1/b; touch few/c d; mkdir many/r2/.git/hooks; true"
        told = await road.call("command.run", ".", input={"command": ["sh", "-c", script]})
        assert [warning for warning in told["warnings"] if "many" in warning and "read-only" in warning]
        assert sorted(path.name for path in root.iterdir()) == ["d", "few", "many"]
        assert (root / "few" / "c").exists() and len(list((root / "many").iterdir())) == 1_000
        assert list((root / "many" / "r2" / ".git").iterdir()) == []


async def test_too_many_secrets_hide_their_folder(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "certs").mkdir(parents=True)
    for number in range(1_000):
        (root / "certs" / f"{number}.key").write_text(CANARY)
    (root / "plain").write_text("open")
    async with Road.open(tmp_path, boxed(root)) as road:
        told = await road.call(
            "command.run", ".", input={"command": ["sh", "-c", "ls certs; cat certs/*.key; cat plain"]}
        )
        assert told["data"]["stdout"] == "open"
        assert [warning for warning in told["warnings"] if "certs" in warning and "hidden" in warning]


async def test_thousands_of_repositories_stall_nobody_and_end_no_command(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    async with Road.open(tmp_path, [*boxed(tmp_path / "root"), folder_scope(other, "other")]) as road:
        make = "import os\nfor i in range(2500): os.makedirs(f'r{i}/.git')"
        await road.data("command.run", ".", input={"command": ["/usr/bin/python3", "-c", make]})
        waits: list[float] = []

        async def asked() -> float:
            started = time.perf_counter()
            await road.data("file.list", ".", scope="other")
            return time.perf_counter() - started

        async def ask(over: anyio.Event) -> None:
            while not over.is_set():
                waits.append(await asked())

        # A machine that is busy with other work is slow without any command too.
        quiet = sorted([await asked() for _ in range(40)])[38]

        over = anyio.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(ask, over)
            for _ in range(5):
                told = await road.call("command.run", ".", input={"command": ["sh", "-c", "touch r1/.git/x; echo ran"]})
                assert told["ok"] and told["data"]["stdout"] == "ran\n"
                assert any("read-only" in warning for warning in told["warnings"])
            over.set()
        assert list((road.root / "r1" / ".git").iterdir()) == []
        # What takes a tenth of a second of work was done by another thread; on the event loop it would stop every call.
        assert sorted(waits)[len(waits) * 95 // 100] < max(0.1, 10 * quiet), (quiet, sorted(waits)[-5:])

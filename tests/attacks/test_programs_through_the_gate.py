"""Real programs in the sandbox through the gate, against servers on the loopback with names of their own."""

import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.desktop import stop, tied
from support.road import Road, folder_scope

pytestmark = pytest.mark.anyio
NAME = "registry.example.org"
_FILES = "import http.server, functools, socket, sys; k = http.server.ThreadingHTTPServer; k.address_family = socket.AF_INET6 if ':' in sys.argv[2] else socket.AF_INET; s = k((sys.argv[2], 0), functools.partial(http.server.SimpleHTTPRequestHandler, directory=sys.argv[1])); print(s.server_port, flush=True); s.serve_forever()"


@contextmanager
def file_server(folder: Path, address: str = "127.0.0.1") -> Iterator[int]:
    """The port of a server of these files."""
    process = subprocess.Popen(
        tied([sys.executable, "-c", _FILES, str(folder), address]),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        stop(process)


@pytest.fixture
async def road(tmp_path: Path) -> AsyncIterator[tuple[Road, int, Path]]:
    served, root = tmp_path / "served", tmp_path / "root"
    served.mkdir()
    root.mkdir()
    with file_server(served) as port:
        network = [f"{NAME}:{port}=127.0.0.1"]
        scope = folder_scope(root, allowedCommands=["*"], network=network, sandbox="required")
        async with Road.open(tmp_path, [scope]) as opened:
            yield opened, port, served


async def ran(road: Road, *argv: str) -> dict[str, Any]:
    data = await road.data("command.run", ".", input={"command": list(argv)}, options={"timeoutSeconds": 120})
    assert data["exitCode"] == 0, data
    return data


def wheel(folder: Path) -> None:
    """A package index with one pure wheel."""
    import zipfile

    place = folder / "simple" / "gatepkg"
    place.mkdir(parents=True)
    name = "gatepkg-1.0-py3-none-any.whl"
    with zipfile.ZipFile(place / name, "w") as made:
        made.writestr("gatepkg.py", "HERE = 1\n")
        made.writestr("gatepkg-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: gatepkg\nVersion: 1.0\n")
        made.writestr(
            "gatepkg-1.0.dist-info/WHEEL",
            "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        made.writestr("gatepkg-1.0.dist-info/RECORD", "gatepkg.py,,\n")
    (place / "index.html").write_text(f'<a href="{name}">{name}</a>')


async def test_pip_installs_from_the_allowed_index_only(road: tuple[Road, int, Path]) -> None:
    opened, port, served = road
    wheel(served)
    await installs(opened, NAME, port)


async def installs(opened: Road, host: str, port: int) -> None:
    """The pip of the system installs the package from this host."""
    pip = ("/usr/bin/python3", "-m", "pip") if Path("/usr/lib/python3/dist-packages/pip").is_dir() else None
    if pip is None:
        pytest.skip("no pip of the system")
    index = f"http://{host}:{port}/simple"
    await ran(opened, *pip, "install", "-q", "--no-input", "--disable-pip-version-check", "--target", "lib", "--index-url", index,
              "--trusted-host", host, "gatepkg")  # fmt: skip
    assert (opened.root / "lib" / "gatepkg.py").read_text() == "HERE = 1\n"


@pytest.mark.parametrize("by", ["environment", "settings"])
async def test_a_preset_opens_the_index_of_this_machines_settings_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    served, root = tmp_path / "served", tmp_path / "root"
    root.mkdir()
    wheel(served)
    with file_server(served) as port, file_server(served) as other:
        settings = tmp_path / "person" / ".config" / "pip" / "pip.conf"
        settings.parent.mkdir(parents=True)
        monkeypatch.setenv("HOME", str(tmp_path / "person"))
        if by == "environment":
            monkeypatch.setenv("PIP_INDEX_URL", f"http://localhost:{port}/simple")
        else:
            monkeypatch.delenv("PIP_INDEX_URL", raising=False)
            settings.write_text(f"[global]\nindex-url = http://localhost:{port}/simple\n")
        scope = folder_scope(root, allowedCommands=["*"], network=["pip"], sandbox="required")
        async with Road.open(tmp_path, [scope]) as opened:
            await installs(opened, "localhost", port)
            reply = await opened.call(
                "command.run", ".", input={"command": ["curl", "-sS", f"http://localhost:{other}/"]}
            )
            assert reply["data"]["exitCode"] != 0 and reply["data"]["stdout"] == ""
            assert any(f"scope allow-host app localhost:{other}" in warning for warning in reply["warnings"])


@pytest.mark.parametrize("options", ["", "--noproxy '*'"])
async def test_a_host_of_ipv6_is_reached_by_name_and_a_listed_address_by_itself(tmp_path: Path, options: str) -> None:
    served, root = tmp_path / "served", tmp_path / "root"
    root.mkdir()
    served.mkdir()
    (served / "x").write_text("six")
    with file_server(served, "::1") as six, file_server(served, "127.0.0.3") as four:
        network = [f"six.example.org:{six}=::1", f"127.0.0.3:{four}"]
        scope = folder_scope(root, allowedCommands=["*"], network=network, sandbox="required")
        async with Road.open(tmp_path, [scope]) as opened:
            for place in (f"six.example.org:{six}", f"127.0.0.3:{four}"):
                assert (await ran(opened, "sh", "-c", f"curl -sS {options} http://{place}/x"))["stdout"] == "six"
            reply = await opened.call(
                "command.run", ".", input={"command": ["sh", "-c", f"curl -sS {options} http://127.0.0.4:{four}/x"]}
            )
            assert "six" not in reply["data"]["stdout"] and reply["warnings"] != []


async def test_git_clones_over_http(road: tuple[Road, int, Path]) -> None:
    opened, port, served = road
    work = served / "work"
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-C", str(work)]
    subprocess.run(["git", "init", "-q", str(work)], check=True)
    (work / "a.txt").write_text("here\n")
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "one"], check=True)
    subprocess.run(["git", "clone", "-q", "--bare", str(work), str(served / "repo")], check=True)
    subprocess.run(["git", "-C", str(served / "repo"), "update-server-info"], check=True)
    await ran(opened, "git", "clone", "-q", f"http://{NAME}:{port}/repo", "copy")
    assert (opened.root / "copy" / "a.txt").read_text() == "here\n"


@pytest.mark.skipif(shutil.which("npm") is None, reason="needs npm")
async def test_npm_installs_a_package(road: tuple[Road, int, Path]) -> None:
    import io
    import json
    import tarfile

    opened, port, served = road
    content = json.dumps({"name": "gatepkg", "version": "1.0.0"}).encode()
    with tarfile.open(served / "gatepkg-1.0.0.tgz", "w:gz") as made:
        entry = tarfile.TarInfo("package/package.json")
        entry.size = len(content)
        made.addfile(entry, io.BytesIO(content))
    dist = {"tarball": f"http://{NAME}:{port}/gatepkg-1.0.0.tgz"}
    about = {
        "name": "gatepkg",
        "dist-tags": {"latest": "1.0.0"},
        "versions": {"1.0.0": {"name": "gatepkg", "version": "1.0.0", "dist": dist}},
    }
    (served / "gatepkg").write_text(json.dumps(about))
    (opened.root / "package.json").write_text("{}")
    registry = f"http://{NAME}:{port}/"
    await ran(
        opened, "npm", "install", "--no-audit", "--no-fund", "--registry", registry, "--cache", "/tmp/npm", "gatepkg"
    )
    assert (opened.root / "node_modules" / "gatepkg" / "package.json").read_bytes() == content


async def test_python_and_node_programs_without_a_proxy_setting(road: tuple[Road, int, Path]) -> None:
    opened, port, served = road
    (served / "x").write_text("here")
    code = f"import urllib.request, os; [os.environ.pop(n, 0) for n in list(os.environ) if 'proxy' in n.lower()]; print(urllib.request.urlopen('http://{NAME}:{port}/x').read())"
    assert (await ran(opened, "python3", "-c", code))["stdout"] == "b'here'\n"
    if shutil.which("node"):
        script = f"fetch('http://{NAME}:{port}/x').then(r => r.text()).then(console.log)"
        assert (await ran(opened, "node", "-e", script))["stdout"] == "here\n"

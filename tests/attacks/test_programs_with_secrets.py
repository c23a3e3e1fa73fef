"""Real programs use a secret through the gate, against TLS servers on the loopback that want it."""

import io
import json
import shutil
import subprocess
import tarfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from computer_linker.vault.secret import StoredSecret
from computer_linker.vault.vault import Vault
from support.certificates import Authority
from support.guarded_server import guarded_server
from support.road import Road, folder_scope

pytestmark = pytest.mark.anyio
HOST = "registry.example.org"
CANARY = "npm_C4naryValue0123456789abcdefABCDEFxyz"


@dataclass
class Scene:
    road: Road
    port: int
    served: Path

    @property
    def url(self) -> str:
        return f"https://{HOST}:{self.port}"

    async def ran(self, *argv: str) -> str:
        data = await self.road.data("command.run", ".", input={"command": list(argv)}, options={"timeoutSeconds": 120})
        assert data["exitCode"] == 0, data
        assert CANARY not in json.dumps(data)
        return str(data["stdout"])

    def holds_no_secret(self) -> bool:
        found = (path for path in self.road.root.rglob("*") if path.is_file())
        return not any(CANARY.encode() in path.read_bytes() for path in found)


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    served, root = tmp_path / "served", tmp_path / "root"
    served.mkdir()
    root.mkdir()
    authority = Authority(tmp_path)
    with guarded_server(served, authority.certificate(HOST), CANARY) as port:
        scope = folder_scope(
            root,
            allowedCommands=["*"],
            network=[f"{HOST}:{port}=127.0.0.1"],
            sandbox="required",
            secrets=["registry"],
        )
        async with Road.open(tmp_path, [scope]) as road:
            secret = StoredSecret(
                name="registry", host=HOST, port=port, variable="NPM_TOKEN", authority=authority.file.read_text(), value=CANARY
            )  # fmt: skip
            road.app.dispatcher.services.use(Vault).add(secret, replace=False)
            yield Scene(road, port, served)


@pytest.mark.parametrize("options", ["", "--noproxy '*'"])
async def test_curl(scene: Scene, options: str) -> None:
    (scene.served / "x").write_text("here")
    assert (
        await scene.ran("sh", "-c", f'curl -sSf {options} -H "Authorization: Bearer $NPM_TOKEN" {scene.url}/x')
        == "here"
    )
    assert await scene.ran("sh", "-c", f'curl -sSf {options} -u "me:$NPM_TOKEN" {scene.url}/x') == "here"


async def test_git_over_https_by_its_credential_helper_and_by_the_address(scene: Scene) -> None:
    work = scene.served / "work"
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-C", str(work)]
    subprocess.run(["git", "init", "-q", str(work)], check=True)
    (work / "a.txt").write_text("here\n")
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "one"], check=True)
    subprocess.run(["git", "clone", "-q", "--bare", str(work), str(scene.served / "repo")], check=True)
    subprocess.run(["git", "-C", str(scene.served / "repo"), "update-server-info"], check=True)
    await scene.ran("git", "clone", "-q", f"{scene.url}/repo", "copy")
    assert (scene.road.root / "copy" / "a.txt").read_text() == "here\n"
    await scene.ran("sh", "-c", f'git clone -q "https://me:$NPM_TOKEN@{HOST}:{scene.port}/repo" again')
    assert (scene.road.root / "again" / "a.txt").read_text() == "here\n" and scene.holds_no_secret()


async def test_pip(scene: Scene) -> None:
    from attacks.test_programs_through_the_gate import wheel

    wheel(scene.served)
    if not Path("/usr/lib/python3/dist-packages/pip").is_dir():
        pytest.skip("no pip of the system")
    index = f"https://me:$NPM_TOKEN@{HOST}:{scene.port}/simple"
    await scene.ran("sh", "-c", f'/usr/bin/python3 -m pip install -q --no-input --disable-pip-version-check --target lib --index-url "{index}" gatepkg')  # fmt: skip
    assert (scene.road.root / "lib" / "gatepkg.py").read_text() == "HERE = 1\n" and scene.holds_no_secret()


@pytest.mark.skipif(shutil.which("npm") is None, reason="needs npm")
async def test_npm_by_a_settings_file_that_names_the_variable(scene: Scene) -> None:
    content = json.dumps({"name": "gatepkg", "version": "1.0.0"}).encode()
    with tarfile.open(scene.served / "gatepkg-1.0.0.tgz", "w:gz") as made:
        entry = tarfile.TarInfo("package/package.json")
        entry.size = len(content)
        made.addfile(entry, io.BytesIO(content))
    dist = {"tarball": f"{scene.url}/gatepkg-1.0.0.tgz"}
    version = {"name": "gatepkg", "version": "1.0.0", "dist": dist}
    about = {"name": "gatepkg", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}
    (scene.served / "gatepkg").write_text(json.dumps(about))
    root = scene.road.root
    (root / "package.json").write_text("{}")
    (root / "npm.settings").write_text(f"registry={scene.url}/\n//{HOST}:{scene.port}/:_authToken=${{NPM_TOKEN}}\n")
    # Not `.npmrc`, which no program of a scope sees: it is where tokens lie.
    options = ("--no-audit", "--no-fund", "--cache", "/tmp/npm", "--userconfig", "npm.settings")
    await scene.ran("npm", "install", *options, "gatepkg")
    assert (root / "node_modules" / "gatepkg" / "package.json").read_bytes() == content and scene.holds_no_secret()


async def test_python(scene: Scene) -> None:
    (scene.served / "x").write_text("here")
    code = (
        "import os, urllib.request as r\n"
        f"q = r.Request('{scene.url}/x', headers={{'Authorization': 'Bearer ' + os.environ['NPM_TOKEN']}})\n"
        "print(r.urlopen(q).read())"
    )
    assert await scene.ran("python3", "-c", code) == "b'here'\n"


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
async def test_node(scene: Scene) -> None:
    (scene.served / "x").write_text("here")
    script = f"fetch('{scene.url}/x', {{headers: {{Authorization: 'Bearer ' + process.env.NPM_TOKEN}}}}).then(r => r.text()).then(console.log)"
    assert await scene.ran("node", "-e", script) == "here\n"


_CHROMIUM = (
    "chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --disable-background-networking "
    "--user-data-dir=/tmp/profile --virtual-time-budget=8000 --timeout=60000"
)


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium")
async def test_a_headless_browser_shows_a_page_behind_the_secret(scene: Scene) -> None:
    (scene.served / "page.html").write_text("<p id=x>wait</p><script src=part.js></script>")
    (scene.served / "part.js").write_text("document.getElementById('x').textContent = location.hostname + ' is here'")
    address = f"https://me:$NPM_TOKEN@{HOST}:{scene.port}/page.html"
    shown = await scene.ran("sh", "-c", f'{_CHROMIUM} --dump-dom "{address}" 2>/tmp/err')
    assert f"{HOST} is here" in shown and scene.holds_no_secret()
    assert not list(Path("/etc/chromium").rglob("computer-linker*"))


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium")
async def test_a_headless_browser_trusts_no_other_certificates(scene: Scene) -> None:
    (scene.served / "page.html").write_text("here")
    scene.road.app.dispatcher.services.use(Vault).remove("registry")
    shown = await scene.ran(
        "sh", "-c", f"{_CHROMIUM} --dump-dom https://{HOST}:{scene.port}/page.html 2>/tmp/err; true"
    )
    assert "here" not in shown


async def test_a_program_without_the_placeholder_is_refused_by_the_host(scene: Scene) -> None:
    (scene.served / "x").write_text("here")
    code = f"curl -s -o /dev/null -w '%{{http_code}}' -H 'Authorization: Bearer npm_guess' {scene.url}/x"
    assert await scene.ran("sh", "-c", code) == "401"


async def test_the_same_request_is_refused_once_the_owner_removed_the_secret(scene: Scene) -> None:
    (scene.served / "x").write_text("here")
    scene.road.app.dispatcher.services.use(Vault).remove("registry")
    data: dict[str, Any] = await scene.road.data(
        "command.run",
        ".",
        input={"command": ["sh", "-c", f'curl -sSk -H "Authorization: Bearer $NPM_TOKEN" {scene.url}/x']},
    )
    assert "here" not in data["stdout"]

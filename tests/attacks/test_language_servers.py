"""A hostile project, and a language server that it took over: nothing outside is read, written or reached."""

import json
import shutil
import socket
from pathlib import Path
from typing import Any

import pytest

from support import node
from support.language import path_with, service
from support.road import Road, folder_scope

pytestmark = pytest.mark.anyio
HOSTILE = Path(__file__).parents[1] / "support" / "standins" / "hostile_language_server.py"
FILES = {"main.cpp": "int main() { return 0; }\n", ".env": "TOKEN=sesame\n"}


def hostile_clangd(folder: Path) -> dict[str, str]:
    """An environment whose clangd is the hostile server, in a folder of no scope."""
    folder.mkdir()
    program = folder / "clangd"
    program.write_text(f"#!/usr/bin/python3\n{HOSTILE.read_text()}")
    program.chmod(0o755)
    return path_with(folder)


async def test_a_taken_over_server_reads_writes_and_reaches_nothing_outside(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("sesame\n")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.2)
        plan = {"secret": str(secret), "port": listener.getsockname()[1]}
        files = {**FILES, "plan.json": json.dumps(plan)}
        async with service(tmp_path, hostile_clangd(tmp_path / "bin"), files) as road:
            answer = await road.data("code.hover", "main.cpp", input={"symbol": "main"})
            achieved = json.loads(answer["text"])
            # Beside the root is a folder in the sandbox's own memory, which ends with it.
            achieved.pop("write beside the root")
            assert {name: outcome for name, outcome in achieved.items() if outcome == "DONE"} == {}
            assert (road.root / "main.cpp").read_text() == FILES["main.cpp"]
            assert not (road.root / "planted.txt").exists() and not (tmp_path / "planted.txt").exists()
        with pytest.raises(TimeoutError):
            listener.accept()


async def test_what_a_server_names_outside_has_no_contents_and_what_is_closed_is_left_out(tmp_path: Path) -> None:
    async with service(tmp_path, hostile_clangd(tmp_path / "bin"), FILES) as road:
        for op in ("code.definition", "code.references"):
            reply = await road.call(op, "main.cpp", input={"symbol": "main"})
            found = {each["path"]: each["text"] for each in reply["data"]["locations"]}
            assert found.pop("main.cpp") == "int main() { return 0; }"
            assert set(found.values()) == {""} and not any(".env" in path for path in found), found
            assert "left out" in " ".join(reply["warnings"])


@pytest.mark.parametrize("where", ["outside", "closed", "up"])
async def test_a_rename_that_reaches_outside_or_to_a_closed_name_changes_nothing(tmp_path: Path, where: str) -> None:
    async with service(tmp_path, hostile_clangd(tmp_path / "bin"), FILES) as road:
        reply = await road.call("code.rename", "main.cpp", input={"symbol": "main", "newName": where})
        assert reply["error"]["code"] in ("permission_denied", "path_out_of_scope"), reply
        assert (road.root / "main.cpp").read_text() == FILES["main.cpp"]
        assert (road.root / ".env").read_text() == FILES[".env"] and not (tmp_path / "planted.txt").exists()


async def test_a_server_in_a_folder_that_a_scope_can_write_is_not_run(tmp_path: Path) -> None:
    files = {**FILES, "node_modules/.bin/clangd": "#!/bin/sh\ntouch /var/tmp/was-run\n"}
    environ = path_with(tmp_path / "root/node_modules/.bin")
    environ["PATH"] = str(tmp_path / "root/node_modules/.bin")
    async with service(tmp_path, environ, files) as road:
        program = road.root / "node_modules/.bin/clangd"
        program.write_text(f"#!/bin/sh\ntouch {tmp_path}/was-run\n")
        program.chmod(0o755)
        reply = await road.call("code.hierarchy", "main.cpp", input={"symbol": "main", "kind": "callers"})
        if reply["ok"] or reply["error"]["code"] != "provider_unavailable":
            # The machine's own clangd, from a folder of the system, answered instead.
            assert shutil.which("clangd", path="/usr/local/bin:/usr/bin:/bin")
        assert not (tmp_path / "was-run").exists()


async def test_the_code_of_a_project_is_not_run_by_the_typescript_server(tmp_path: Path) -> None:
    """A plugin that tsconfig.json names, and the project's own TypeScript: neither is loaded."""
    planted = "require('fs').writeFileSync('/tmp/loaded', 'x'); throw new Error('HOSTILE');\n"
    files = {
        "main.ts": "export const one: number = two;\nconst two = 2;\n",
        "tsconfig.json": json.dumps({"compilerOptions": {"strict": True, "plugins": [{"name": "hostile"}]}}),
        "node_modules/hostile/index.js": planted,
        "node_modules/hostile/package.json": '{"name": "hostile", "main": "index.js", "version": "1.0.0"}',
        "node_modules/typescript/lib/tsserver.js": planted,
        "node_modules/typescript/package.json": '{"name": "typescript", "version": "5.9.3"}',
    }
    async with service(tmp_path, path_with(node.needed(node.typescript_language_server)), files) as road:
        found = await road.data("code.definition", "main.ts", input={"line": 1, "symbol": "two"})
        assert [each["line"] for each in found["locations"]] == [2]
        assert "HOSTILE" not in _errors(road)


def _errors(road: Road) -> str:
    from computer_linker.providers.language.pool import LanguageServers

    return "".join(server.last_errors() for server in road.app.services.use(LanguageServers).running())


async def test_a_message_without_end_and_one_that_is_none_end_the_server_not_the_service(tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "clangd"
    program.write_text("#!/bin/sh\nprintf 'Content-Length: 99999999999\\r\\n\\r\\n'\nexec cat > /dev/null\n")
    program.chmod(0o755)
    scope: list[dict[str, Any]] = [folder_scope(tmp_path / "root")]
    async with service(tmp_path, path_with(folder), FILES, scope) as road:
        reply = await road.call("code.hierarchy", "main.cpp", input={"symbol": "main", "kind": "callers"})
        assert reply["error"]["code"] == "provider_unavailable"
        assert (await road.data("file.read", "main.cpp"))["content"] == FILES["main.cpp"]

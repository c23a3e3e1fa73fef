"""A hostile project, and a language server that it took over: nothing outside is read, written or reached."""

import json
import resource
import shutil
import socket
from pathlib import Path
from typing import Any

import pytest

from computer_linker.approvals.approvals import Approvals
from computer_linker.providers.sandbox.places import tool_folders
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


@pytest.mark.skipif(shutil.which("clangd", path="/usr/bin:/bin") is None, reason="needs clangd")
async def test_a_source_that_includes_files_of_the_machine_shows_nothing_of_them(tmp_path: Path) -> None:
    """Found: a client without commands read /etc and the tool folders of the home, word by word in the problems reported."""
    tool = next((path for path in tool_folders() if (Path(path) / "version").is_file()), "/nothing")
    included = ("/etc/hostname", "/etc/passwd", f"{tool}/version", str(Path.home() / ".bashrc"))
    files = {f"{at}.cpp": f'int a =\n#include "{path}"\n;\n' for at, path in enumerate(included)}
    async with service(tmp_path, path_with(), files) as road:
        for name in files:
            found = await road.data("code.diagnostics", name, options={"all": True})
            messages = [each["message"] for each in found["diagnostics"]]
            assert any("not found" in each or "Permission denied" in each for each in messages), messages
            assert not any("In included file" in each for each in messages), messages


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
        reply = await road.call("code.rename", "main.cpp", input={"symbol": "main", "newName": "x"})
        assert reply["error"]["code"] == "provider_unavailable"
        assert (await road.data("file.read", "main.cpp"))["content"] == FILES["main.cpp"]


async def test_no_part_of_what_a_server_would_change_is_hidden(tmp_path: Path) -> None:
    """Found: the middle of a long difference was left out, though no part of it is in the request that stands below."""
    uses = "".join(f"value_{number} = area({number})\n" for number in range(150))
    files = {"shapes.py": f"def area(side: int) -> int:\n    return side\n\n\n{uses}"}
    rules = [folder_scope(tmp_path / "root", confirm="all")]
    async with service(tmp_path, path_with(node.needed(node.pyright)), files, rules) as road:
        renamed = {"symbol": "area", "newName": "measured"}
        # A preview has a few seconds; the first answer of a server may take longer.
        await road.data("code.hover", "shapes.py", input={"symbol": "area"})
        assert await road.code("code.rename", "shapes.py", input=renamed) == "confirm_required"
        (asked,) = road.app.services.use(Approvals).waiting()
        assert asked.about is not None
        shown = set(asked.about.lines)
        assert {f"+value_{number} = measured({number})" for number in range(150)} <= shown
        assert not any("not shown" in line for line in shown)
        assert (road.root / "shapes.py").read_text() == files["shapes.py"]


FLOODS = """#!/usr/bin/python3
import json, os, re, sys
def send(message):
    body = json.dumps(message).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\\r\\n\\r\\n" % len(body) + body)
    sys.stdout.buffer.flush()
while head := sys.stdin.buffer.readline():
    sys.stdin.buffer.readline()
    message = json.loads(sys.stdin.buffer.read(int(head.split()[1])))
    if message.get("method") == "initialize":
        send({"id": message["id"], "result": {"capabilities": {"hoverProvider": True, "definitionProvider": True}}})
    elif message.get("method") == "textDocument/hover":
        problem = {"range": {"start": {"line": 0, "character": 0}}, "message": "x" * 8000}
        for number in range(5_000):
            send({"method": "textDocument/publishDiagnostics", "params": {"uri": f"file:///{number}", "diagnostics": [problem]}})
            if number % 20 == 0:
                send({"method": "$/progress", "params": {"token": number, "value": {"kind": "begin"}}})
        send({"id": message["id"], "result": {"contents": "answered"}})
    elif message.get("method") == "textDocument/definition":
        with open("plan.json", "rb") as file:
            sys.stdout.buffer.write(file.read())
        sys.stdout.buffer.flush()
"""


async def test_a_server_that_reports_without_end_takes_no_memory(tmp_path: Path) -> None:
    """Found: the problems of every file that it named were kept, 40 MB of them here."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/clangd").write_text(FLOODS)
    (tmp_path / "bin/clangd").chmod(0o755)
    async with service(tmp_path, path_with(tmp_path / "bin"), FILES) as road:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        answer = await road.data("code.hover", "main.cpp", input={"symbol": "main"})
        assert answer["text"] == "answered"
        assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10 < 25


def framed(message: Any) -> str:
    body = message if isinstance(message, str) else json.dumps(message)
    return f"Content-Length: {len(body)}\r\n\r\n{body}"


@pytest.mark.parametrize(
    "message",
    [
        "[" * 100_000, [1], 7, {"id": 1, "method": "workspace/configuration", "params": {"items": [7]}},
        {"id": 1, "method": "client/registerCapability", "params": {"registrations": [[]]}},
        {"method": "textDocument/publishDiagnostics", "params": {"diagnostics": 5}},
    ],
    ids=range(6),
)  # fmt: skip
async def test_a_server_that_breaks_the_protocol_is_ended(tmp_path: Path, message: Any) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/clangd").write_text(FLOODS)
    (tmp_path / "bin/clangd").chmod(0o755)
    files = {**FILES, "plan.json": framed(message)}
    async with service(tmp_path, path_with(tmp_path / "bin"), files) as road:
        reply = await road.call("code.definition", "main.cpp", input={"symbol": "main"})
        assert (
            reply["error"]["code"] == "provider_unavailable" and "ended before it answered" in reply["error"]["message"]
        )

"""A scope that may write cannot choose what runs for another scope, nor what the service runs itself."""

import os
import sysconfig
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from computer_linker.computer.base import Computer
from computer_linker.computer.local.linux.apps import LinuxApps
from computer_linker.computer.simulated.computer import SimulatedComputer
from computer_linker.errors import ProviderUnavailable
from computer_linker.fleet.embedded import server_program
from computer_linker.model.scope import Scope
from computer_linker.providers.processes.prepare import Preparation
from computer_linker.providers.sandbox.sandbox import Sandbox
from computer_linker.service.programs import tool_readiness
from support.road import LOCAL, Road, computer_scope, folder_scope

pytestmark = pytest.mark.anyio

FILES_ONLY = ["fs:read", "fs:write"]


def program(path: Path, text: str = "#!/bin/sh\necho planted > $PWD/PLANTED\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@asynccontextmanager
async def two_scopes(tmp_path: Path, *, path: str, writes: bool = True, **policy: Any) -> AsyncIterator[Road]:
    """Scope `tools` has files only; scope `app` runs commands with this search path."""
    tools = folder_scope(tmp_path / "tools", "tools", **policy)
    tools["capabilities"] = FILES_ONLY if writes else ["fs:read"]
    scopes = [folder_scope(tmp_path / "root", "app", allowedCommands=["*"]), tools]
    async with Road.open(tmp_path, scopes) as road:
        services = road.app.services
        environ = {"PATH": f"{path}:/usr/bin:/bin", "HOME": os.environ["HOME"]}
        made = Preparation(
            services.use(Computer), services.use(Sandbox), environ, scopes=lambda: services.config.scopes
        )
        services.provide(Preparation, made)
        yield road


async def test_a_program_on_the_search_path_in_another_scope_does_not_run(tmp_path: Path) -> None:
    tool = program(tmp_path / "tools" / "lib" / "bin" / "pytest-of-g")
    async with two_scopes(tmp_path, path=str(tool.parent)) as road:
        for command in (["pytest-of-g"], [str(tool)]):
            refused = await road.call("command.run", ".", input={"command": command})
            assert refused["error"]["code"] == "permission_denied"
            assert refused["error"]["details"]["rule"] == "programOfAnotherScope"
            assert "scope tools" in refused["error"]["message"]
        shell = await road.data("command.run", ".", input={"command": ["sh", "-c", "pytest-of-g; echo $PATH"]})
        assert str(tool.parent) not in shell["stdout"]
        assert not (road.root / "PLANTED").exists()


async def test_a_caller_does_not_learn_the_name_of_a_scope_it_may_not_use(tmp_path: Path) -> None:
    tool = program(tmp_path / "tools" / "bin" / "pytest-of-g")
    who = replace(LOCAL, proof="oauth", grants=frozenset({"app"}))
    async with two_scopes(tmp_path, path=str(tool.parent)) as road:
        refused = await road.call("command.run", ".", input={"command": ["pytest-of-g"]}, principal=who)
        assert refused["error"]["code"] == "permission_denied"
        assert "another scope" in refused["error"]["message"] and "scope tools" not in str(refused)


async def test_a_program_of_a_read_only_scope_runs(tmp_path: Path) -> None:
    tool = program(tmp_path / "tools" / "bin" / "pytest-of-g", "#!/bin/sh\necho fine\n")
    async with two_scopes(tmp_path, path=str(tool.parent), writes=False) as road:
        ran = await road.data("command.run", ".", input={"command": ["pytest-of-g"]})
        assert ran["stdout"] == "fine\n"


async def test_a_link_or_an_interpreter_in_another_scope_counts_too(tmp_path: Path) -> None:
    real = program(tmp_path / "tools" / "real-g")
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    (bin_folder / "linked-g").symlink_to(real)
    program(bin_folder / "script-g", f"#!{real}\n")
    async with two_scopes(tmp_path, path=str(bin_folder)) as road:
        for name in ("linked-g", "script-g"):
            refused = await road.call("command.run", ".", input={"command": [name]})
            assert refused["error"]["details"]["rule"] == "programOfAnotherScope", name
        assert not (road.root / "PLANTED").exists()


@pytest.mark.parametrize("reaches", [False, True])
async def test_a_protected_tool_folder_of_a_writable_home_stays_usable(tmp_path: Path, reaches: bool) -> None:
    tool = program(tmp_path / "tools" / ".cargo" / "bin" / "tool-g", "#!/bin/sh\necho fine\n")
    async with two_scopes(tmp_path, path=str(tool.parent), allowProtected=reaches) as road:
        ran = await road.call("command.run", ".", input={"command": ["tool-g"]})
        assert ran["ok"] is not reaches, ran


async def test_a_projects_own_tools_run_as_before(tmp_path: Path) -> None:
    async with two_scopes(tmp_path, path="/usr/bin") as road:
        program(road.root / ".venv" / "bin" / "own-g", "#!/bin/sh\necho own\n")
        ran = await road.data("command.run", ".", input={"command": [".venv/bin/own-g"]})
        assert ran["stdout"] == "own\n"


async def test_an_agent_that_another_scope_could_have_replaced_does_not_start(tmp_path: Path) -> None:
    mark = tmp_path / "started"
    tool = program(tmp_path / "tools" / "bin" / "codex", f"#!/bin/sh\ntouch {mark}\n")
    async with two_scopes(tmp_path, path=str(tool.parent)) as road:
        refused = await road.call("codex.run", ".", input={"prompt": "go"})
        assert refused["error"]["code"] == "permission_denied"
        assert not mark.exists()


async def test_the_service_itself_runs_no_program_that_a_scope_could_have_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = tmp_path / "ran"
    for name in ("bwrap", "codex", "agent-browser", "git"):
        program(tmp_path / "tools" / "bin" / name, f"#!/bin/sh\ntouch {mark}\necho 9.9.9 --ro-bind-fd\n")
    monkeypatch.setenv("PATH", f"{tmp_path}/tools/bin:/usr/bin:/bin")
    tools = folder_scope(tmp_path / "tools", "tools")
    async with Road.open(tmp_path, [folder_scope(tmp_path / "root", "app", allowedCommands=["*"]), tools]) as road:
        ran = await road.data("command.run", ".", input={"command": ["echo", "hello"]})
        assert ran["stdout"] == "hello\n"
        await road.data("backend.status")
        found = tool_readiness(road.app.config.scopes)
        assert found["codex"].path == f"{tmp_path}/tools/bin/codex" and found["codex"].version is None
    assert not mark.exists()


def with_apps(environ: dict[str, str]) -> SimulatedComputer:
    """A simulated desktop that opens real desktop entries."""
    computer = SimulatedComputer()
    apps = LinuxApps(computer.windows, environ, lambda: computer.scopes())
    computer.provide("apps", apps, backend="desktop entries")
    return computer


@pytest.mark.parametrize("planted", ["program", "absolute", "env", "interpreter", "entry"])
async def test_an_application_that_a_scope_could_have_replaced_is_not_started(tmp_path: Path, planted: str) -> None:
    mark, tools = tmp_path / "ran", tmp_path / "tools"
    bad = program(tools / "bin" / "editor-g", f"#!/bin/sh\ntouch {mark}\n")
    good = program(tmp_path / "safe" / "viewer-g", f"#!{bad}\n" if planted == "interpreter" else "#!/bin/sh\nexit 0\n")
    execs = {
        "program": "editor-g", "absolute": str(bad), "env": "env A=1 editor-g", "interpreter": str(good),
        "entry": f"/bin/sh -c 'touch {mark}'",
    }  # fmt: skip
    data = tools / "share" if planted == "entry" else tmp_path / "share"
    (data / "applications").mkdir(parents=True)
    (data / "applications" / "editor.desktop").write_text(
        f"[Desktop Entry]\nType=Application\nName=Editor\nExec={execs[planted]}\n"
    )
    environ = {"PATH": f"{bad.parent}:/usr/bin:/bin", "XDG_DATA_HOME": str(data), "HOME": str(tmp_path)}
    scopes = [computer_scope(), folder_scope(tools, "tools")]
    async with Road.open(tmp_path, scopes, with_apps(environ)) as road:
        refused = await road.call("app.open", "editor", scope="desk")
        assert refused["error"]["code"] == "permission_denied", refused
        assert refused["error"]["details"]["rule"] == "programOfAnotherScope"
    assert not mark.exists()


async def test_an_application_outside_every_writable_scope_starts(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    program(tmp_path / "safe" / "viewer-g", f"#!/bin/sh\ntouch {mark}\nexit 3\n")
    (tmp_path / "share" / "applications").mkdir(parents=True)
    (tmp_path / "share" / "applications" / "v.desktop").write_text(
        "[Desktop Entry]\nType=Application\nName=Viewer\nExec=viewer-g\n"
    )
    environ = {"PATH": f"{tmp_path}/safe:/usr/bin:/bin", "XDG_DATA_HOME": f"{tmp_path}/share", "HOME": str(tmp_path)}
    tools = tmp_path / "tools"
    tools.mkdir()
    async with Road.open(tmp_path, [computer_scope(), folder_scope(tools, "tools")], with_apps(environ)) as road:
        ended = await road.call("app.open", "v", scope="desk")
        assert ended["error"]["details"]["exitCode"] == 3
    assert mark.exists()


def test_the_hubs_server_is_none_that_a_scope_could_have_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = program(tmp_path / "tools" / "nats-server")
    monkeypatch.setenv("PATH", f"{planted.parent}:/usr/bin:/bin")
    places = [tmp_path / "tools", Path(sysconfig.get_path("scripts"))]
    scopes = [Scope.from_wire(folder_scope(place, f"s{n}")) for n, place in enumerate(places)]
    with pytest.raises(ProviderUnavailable):
        server_program(scopes)
    assert server_program([]) != str(planted) or not Path(sysconfig.get_path("scripts"), "nats-server").exists()

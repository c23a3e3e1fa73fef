"""What the first command would wait for is found out before it comes."""

import weakref
from pathlib import Path

import pytest

from computer_linker.providers.sandbox.sandbox import Sandbox
from computer_linker.service.introspection import ServiceIntrospection
from computer_linker.service.startup_probe import boundary_found_out, find_out
from computer_linker.transports.mcp.fast_path import FastPath
from computer_linker.transports.mcp.prepared import prepared, write_prepared
from computer_linker.transports.mcp.tools import Tools
from support.road import Road, folder_scope
from support.waiting import until

pytestmark = pytest.mark.anyio


async def test_the_boundary_is_known_before_the_first_command(tmp_path: Path) -> None:
    scopes = [folder_scope(tmp_path / "root", allowedCommands=["*"])]
    async with Road.open(tmp_path, scopes) as road, boundary_found_out(road.app):
        sandbox = road.app.services.use(Sandbox)
        await until(lambda: sandbox.known is not None)
        assert sandbox.known is await sandbox.probe()


async def test_nothing_is_started_where_no_scope_runs_commands_inside_a_boundary(tmp_path: Path) -> None:
    quiet = folder_scope(tmp_path / "root", "quiet", allowedCommands=["*"], sandbox="off")
    reading = folder_scope(tmp_path / "root", "reading") | {"capabilities": ["fs:read"]}
    async with Road.open(tmp_path, [quiet, reading]) as road:
        await find_out(road.app)
        assert road.app.services.use(Sandbox).known is None


async def test_a_service_that_ends_meanwhile_leaves_nothing(tmp_path: Path) -> None:
    scopes = [folder_scope(tmp_path / "root", allowedCommands=["*"])]
    async with Road.open(tmp_path, scopes) as road:
        async with boundary_found_out(road.app):
            pass
        assert road.app.services.use(Sandbox).known is None


async def test_nothing_waits_for_tools_that_were_given_as_they_are(tmp_path: Path) -> None:
    async with Road.open(tmp_path, []) as road:
        fast_path = FastPath(Tools(road.app.dispatcher, ServiceIntrospection(road.app)))
        write_prepared(road.app.home, prepared(fast_path))
        compared: list[str] = []

        class Connection:
            def compare(self) -> None:
                compared.append("compared")

        connection = Connection()
        is_kept = weakref.ref(connection)
        fast_path.tools.list_changes.when_tools_are_known(connection.compare)
        del connection
        async with boundary_found_out(road.app, fast_path):
            await until(lambda: is_kept() is None)
        assert compared == []

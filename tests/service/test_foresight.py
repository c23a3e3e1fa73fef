"""What the first command would wait for is found out before it comes."""

import weakref
from pathlib import Path
from typing import Any

import pytest

from computer_linker.providers.sandbox.boundary import NO_BOUNDARY
from computer_linker.providers.sandbox.sandbox import Sandbox
from computer_linker.service.catalogue import Catalogue
from computer_linker.service.expected_boundary import FILE_NAME, ExpectedBoundary
from computer_linker.service.introspection import ServiceIntrospection
from computer_linker.service.programs import FILE_NAME as VERSIONS
from computer_linker.service.startup_probe import boundary_found_out, find_out
from computer_linker.transports.mcp.fast_path import FastPath
from computer_linker.transports.mcp.list_changes import ListChanges
from computer_linker.transports.mcp.prepared import prepared, write_prepared
from computer_linker.transports.mcp.tools import Tools
from support.road import LOCAL, Road, folder_scope
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


async def test_a_report_does_not_wait_for_a_probe_that_an_earlier_service_made(tmp_path: Path) -> None:
    scopes = [folder_scope(tmp_path / "root", allowedCommands=["*"])]
    async with Road.open(tmp_path, scopes) as road:
        async with boundary_found_out(road.app):
            await until(lambda: (road.app.home / FILE_NAME).exists())
        probed = await boundary_in(road)
    async with Road.open(tmp_path, scopes) as road:
        road.app.services.use(ExpectedBoundary).begin()
        assert await boundary_in(road) == probed
        assert road.app.services.peek(Sandbox) is None
        # A command waits for the probe of its own service.
        ran = await road.call("command.run", input={"command": ["true"]})
        assert ran["data"]["boundary"] == probed["commands"]
        assert road.app.services.use(Sandbox).known is not None


async def test_a_probe_in_another_state_of_the_machine_is_not_expected(tmp_path: Path) -> None:
    scopes = [folder_scope(tmp_path / "root", allowedCommands=["*"])]
    async with Road.open(tmp_path, scopes) as road:
        expected = road.app.services.use(ExpectedBoundary)
        expected.keep(await road.app.services.use(Sandbox).probe())
        expected.begin()
        assert expected.boundary is not None
        expected.end()
        assert expected.boundary is None
    wider = [*scopes, folder_scope(tmp_path / "other", "other", allowedCommands=["*"])]
    async with Road.open(tmp_path, wider) as road:
        expected = road.app.services.use(ExpectedBoundary)
        expected.begin()
        assert expected.boundary is None
        expected.keep(NO_BOUNDARY)
        assert not (road.app.home / FILE_NAME).exists()


async def test_the_first_answer_is_prepared_once_a_client_is_there(tmp_path: Path) -> None:
    async with Road.open(tmp_path, [folder_scope(tmp_path / "root", allowedCommands=["*"])]) as road:
        introspection, clients = ServiceIntrospection(road.app), road.app.services.use(ListChanges)
        async with boundary_found_out(road.app, None, introspection):
            assert not road.app.services.use(Catalogue).is_loaded, "a service without clients stays small"
            with clients.watched(lambda: LOCAL, lambda: None):
                await introspection.rehearsed.wait()
                assert road.app.services.use(Catalogue).is_loaded
                # Then the parts that few ask for, the versions of programs last.
                await until((road.app.home / VERSIONS).exists)


async def boundary_in(road: Road) -> Any:
    answer = await ServiceIntrospection(road.app).computer_info({"include": ["scopes"]}, LOCAL)
    return answer.envelope["scopes"][0]["capabilityPolicy"]["boundary"]


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

"""What the first command would wait for is found out before it comes."""

from pathlib import Path

import pytest

from computer_linker.providers.sandbox.sandbox import Sandbox
from computer_linker.service.startup_probe import boundary_found_out, find_out
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

"""The bench for tunnels."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from computer_linker.computer.local.linux.processes import LinuxProcesses
from computer_linker.config.schema import Config
from support.service import TOKEN
from support.tunnels import Bench


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    processes = LinuxProcesses()
    config = Config(machine_id="m", machine_name="m", owner_token=TOKEN)
    yield Bench(home, tmp_path / "programs", processes, config)
    await processes.aclose()

"""Two hosts on a network of their own that is taken down, and a host that is killed: nothing is claimed that is not known."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from support.far import Far, far_process, near_road
from support.road import folder_scope
from support.waiting import until, until_awaited

pytestmark = pytest.mark.anyio
_HERE, _THERE = "10.203.77.1", "10.203.77.2"


class Network:
    """A network namespace with one cable to this one."""

    def __init__(self) -> None:
        self.name = f"clt{os.getpid() % 100_000}"
        self.cable = f"clt{os.getpid() % 100_000}a"

    def lay(self) -> None:
        """Make it. Raises CalledProcessError where the system does not let us."""
        end = self.cable[:-1] + "b"
        for line in (
            f"netns add {self.name}",
            f"link add {self.cable} type veth peer name {end} netns {self.name}",
            f"addr add {_HERE}/30 dev {self.cable}",
            f"link set {self.cable} up",
            f"-n {self.name} addr add {_THERE}/30 dev {end}",
            f"-n {self.name} link set {end} up",
            f"-n {self.name} link set lo up",
        ):
            subprocess.run(["ip", *line.split()], check=True, capture_output=True)

    def pull(self) -> None:
        """Pull the cable."""
        subprocess.run(["ip", "link", "set", self.cable, "down"], check=True)

    def plug(self) -> None:
        """Plug it in again."""
        subprocess.run(["ip", "link", "set", self.cable, "up"], check=True)

    def remove(self) -> None:
        subprocess.run(["ip", "netns", "del", self.name], capture_output=True)
        subprocess.run(["ip", "link", "del", self.cable], capture_output=True)


@pytest.fixture
def network() -> Iterator[Network]:
    if shutil.which("ip") is None:
        pytest.skip("not installed: iproute2")
    made = Network()
    try:
        made.lay()
    except subprocess.CalledProcessError as error:
        made.remove()
        pytest.skip(f"no network namespaces here: {error.stderr.decode().strip()}")
    yield made
    made.remove()


@pytest.fixture
def far_host(network: Network, tmp_path: Path) -> Iterator[Far]:
    inside = ("ip", "netns", "exec", network.name)
    with far_process(tmp_path, "local", {"FAR_LISTEN": _THERE}, inside) as far:
        yield far


async def test_a_partition_in_the_middle_of_an_act_is_neither_done_nor_not_done(
    network: Network, far_host: Far, tmp_path: Path
) -> None:
    root = tmp_path / "far-root"
    root.mkdir()
    (root / "a.txt").write_text("there")
    async with near_road(far_host, tmp_path, [folder_scope(root)]) as road:
        command = {"command": ["sh", "-c", "echo begun >> log; sleep 20; echo ended >> log"]}
        act = asyncio.ensure_future(road.call("command.run", ".", scope="far/app", input=command))
        await until(lambda: (root / "log").exists())
        network.pull()
        with anyio.fail_after(60):
            envelope = await act
        assert envelope["ok"] is False
        assert envelope["error"]["details"]["effect"] == "unverifiable", envelope
        assert envelope["error"]["code"] in ("provider_unavailable", "timeout")
        network.plug()

        async def is_back() -> bool:
            return bool((await road.call("file.read", "a.txt", scope="far/app"))["ok"])

        await until_awaited(is_back)
        assert (root / "log").read_text().count("begun") == 1


async def test_a_host_killed_in_the_middle_of_a_copy_keeps_nothing_of_it(tmp_path: Path) -> None:
    root = tmp_path / "far-root"
    root.mkdir()
    with far_process(tmp_path, "local") as far:
        async with near_road(far, tmp_path, [folder_scope(root)]) as road:
            with (road.root / "big.bin").open("wb") as file:
                file.truncate(2 << 30)
            copy = {"destination": "copy.bin", "destinationScope": "far/app"}
            copying = asyncio.ensure_future(road.call("file.copy", "big.bin", input=copy))
            await until(lambda: _bytes_written(far.process.pid), step_s=0.001)
            far.process.kill()
            envelope = await copying
            assert envelope["ok"] is False
            assert envelope["error"]["details"]["effect"] == "unverifiable", envelope
            assert not (root / "copy.bin").exists()


def _bytes_written(pid: int) -> bool:
    """True once a process has put more into files than a service writes by itself."""
    for line in Path(f"/proc/{pid}/io").read_text().splitlines():
        if line.startswith("wchar:"):
            return int(line.split()[1]) > 64 << 20
    return False

"""A service under load, to be killed: writes and reads, each acknowledged on stdout once its reply is there."""

import os
import sys
from pathlib import Path

import anyio

sys.path.insert(0, str(Path(__file__).parent.parent))

from support.road import Road


async def worker(road: Road, name: str) -> None:
    for number in range(100_000):
        target = f"{name}-{number}.txt"
        written = await road.call("file.write", target, input={"content": target})
        looked = await road.call("file.stat", target)
        for reply in (written, looked):
            assert reply["ok"], reply
            os.write(1, f"{reply['operationId']} {reply['op']} {target}\n".encode())


async def main(place: Path, run: str) -> None:
    async with Road.open(place) as road:
        os.write(1, b"ready\n")
        async with anyio.create_task_group() as group:
            for number in range(8):
                group.start_soon(worker, road, f"run{run}-{number}")


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]), sys.argv[2])

"""A recording ends when the owner takes away what it was begun with."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from computer_linker.computer.simulated import SimulatedComputer
from computer_linker.config.schema import Config
from computer_linker.model.geometry import Rect
from computer_linker.model.scope import Scope
from computer_linker.providers.recording.recorder import Recordings
from computer_linker.service.app import open_app
from support.road import Road, computer_scope
from support.waiting import until

pytestmark = pytest.mark.anyio


def config(*scopes: dict[str, Any]) -> Config:
    return Config(machine_id="test-machine", machine_name="test", scopes=[Scope.from_wire(scope) for scope in scopes])


WITHOUT = {**computer_scope(), "capabilities": ["history:read", "artifact:read"]}


@pytest.mark.parametrize(
    "after",
    [config(WITHOUT), config(), config(computer_scope(allowDisplays=False)), config(computer_scope(excludedApplications=["vault"]))],
    ids=["no capability", "no scope", "no displays", "an application hidden"],
)  # fmt: skip
async def test_a_recording_ends_with_the_right_to_it(tmp_path: Path, after: Config) -> None:
    computer = SimulatedComputer()
    computer.world.open("Vault", "Secrets", Rect(x=0, y=0, width=400, height=300))
    known = [config(computer_scope())]
    async with open_app(tmp_path, lambda: known[-1], computer) as app:
        road = Road(app, tmp_path, tmp_path)
        await road.data("screen.record", "start", scope="desk", options={"maxSeconds": 300, "fps": 10})
        (made,) = app.services.use(Recordings)._all.values()
        known.append(config(computer_scope()))
        frames = made.frames
        await until(lambda: made.frames >= frames + 2)
        assert made.ending is None, "the same rights, read again, end nothing"
        known.append(after)
        with anyio.fail_after(30):
            await made.done.wait()
        assert made.problem and made.lasted_s < 299

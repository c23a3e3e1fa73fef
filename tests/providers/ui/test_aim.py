"""Aims on a desktop that lists its windows but fails to report which of them lie on top."""

import builtins
from pathlib import Path

import pytest

from computer_linker.computer.simulated import SimulatedComputer, SimulatedControl
from computer_linker.computer.simulated.arrange import SimulatedWindows
from computer_linker.errors import ProviderUnavailable
from computer_linker.model.geometry import Rect, Window
from support.road import Road, computer_scope

pytestmark = pytest.mark.anyio
OK = {"target": {"selector": {"byRole": "button", "titleContains": "OK"}}}


class WithoutStack(SimulatedWindows):
    """A window system that does not answer in which order the windows lie."""

    async def stack(self) -> builtins.list[Window]:
        raise ProviderUnavailable("The window system did not answer.")


@pytest.mark.parametrize(("x", "code"), [(10, None), (5000, "conflict")], ids=["visible", "outside"])
async def test_a_control_is_reached_without_the_order_of_the_windows(tmp_path: Path, x: int, code: str | None) -> None:
    """Found: the window system's failure was the answer, while the element was still being scrolled into view."""
    computer = SimulatedComputer()
    computer.provide("windows", WithoutStack(computer.world), backend="simulated")
    window = computer.world.open("editor", "Draft", Rect(x=40, y=40, width=400, height=300))
    window.controls.append(SimulatedControl("button", "OK", Rect(x=x, y=50, width=80, height=30)))
    async with Road.open(tmp_path, [computer_scope()], computer) as road:
        done = await road.call("desktop.click", scope="desk", input=OK)
    assert (done.get("error") or {}).get("code") == code, done
    assert (window.log == []) is (code is not None), window.log

"""Dialogs in which a person gives rights, or a password for them, are not a client's to answer."""

from pathlib import Path

import pytest

from computer_linker.computer.simulated import SimulatedComputer, SimulatedControl
from computer_linker.model.geometry import Rect
from support.road import Road, computer_scope

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    "app", ["xdg-desktop-portal-gnome", "polkit-gnome-authentication-agent-1", "gcr-prompter", "pinentry-gtk-2"]
)
async def test_nobody_presses_a_persons_yes(tmp_path: Path, app: str) -> None:
    computer = SimulatedComputer()
    window = computer.world.open(app, "Share your desktop?", Rect(x=100, y=100, width=400, height=300))
    window.controls = [SimulatedControl("check-box", "Share", Rect(x=10, y=10, width=100, height=30), is_checked=False)]
    async with Road.open(tmp_path, scopes=[computer_scope()], computer=computer) as road:
        target = {"selector": {"role": "checkbox", "name": "Share"}, "route": {"app": app}}
        assert await road.code("desktop.click", target, scope="desk") == "permission_denied"
        assert await road.code("ui.tree", app, scope="desk") == "permission_denied"
        frame = (await road.data("screen.capture", "primary", scope="desk"))["frameId"]
        at = {"frameId": frame, "x": 130, "y": 120}
        assert await road.code("desktop.click", at, scope="desk") == "permission_denied"
        assert window.controls[0].is_checked is False

"""A desktop on which no session bus runs: keys and pictures need none."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from computer_linker.computer.local.probe import this_computer
from support.desktop import Desktop, missing, x11_desktop
from support.harness import Harness
from support.road import Road, computer_scope

pytestmark = [pytest.mark.anyio, pytest.mark.desktop]


@pytest.fixture(scope="module")
def desktop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desktop]:
    """Xvfb with openbox; its environment names a runtime folder, in which nothing listens."""
    if lacking := missing("Xvfb", "openbox"):
        pytest.skip(f"not installed: {', '.join(lacking)}")
    with x11_desktop(tmp_path_factory.mktemp("x11"), with_bus=False) as opened:
        yield opened


@pytest.fixture
async def road(tmp_path: Path, desktop: Desktop) -> AsyncIterator[Road]:
    scopes = [computer_scope(), computer_scope("narrow", excludedApplications=["harness*"])]
    async with Road.open(tmp_path, scopes=scopes, computer=this_computer(desktop.env)) as opened:
        yield opened


async def test_keys_reach_the_focused_window(road: Road, harness: Harness) -> None:
    harness.next("focus_in")
    pressed = await road.call("desktop.press", scope="desk", input={"key": "a"})
    assert (pressed["data"]["delivered"], pressed["data"]["element"]) == (True, None)
    assert harness.next("key_down")["keysym"] == ord("a")
    chord = await road.data("desktop.hotkey", scope="desk", input={"keys": ["ctrl", "s"]})
    assert chord["method"] == "keys"
    assert harness.next("key_down", keysym=ord("s"))


async def test_text_reaches_the_focused_window_and_nobody_says_it_was_read_back(road: Road, harness: Harness) -> None:
    harness.next("focus_in")
    typed = await road.call("desktop.type_text", scope="desk", input={"text": "abc"})
    assert (typed["data"]["method"], typed["effect"]) == ("keys", "unverifiable")
    assert [one["keysym"] for one in harness.take("key_down", 3)] == [ord(letter) for letter in "abc"]


@pytest.mark.parametrize(
    ("op", "given"),
    [("desktop.press", {"key": "a"}), ("desktop.type_text", {"text": "a"}), ("desktop.hotkey", {"keys": ["ctrl", "a"]})],
)  # fmt: skip
async def test_an_application_out_of_reach_gets_no_keys(
    road: Road, harness: Harness, op: str, given: dict[str, object]
) -> None:
    harness.next("focus_in")
    assert await road.code(op, scope="narrow", input=given) == "permission_denied"
    assert [one for one in harness.quiet() if one["event"] == "key_down"] == []


async def test_an_element_or_a_place_by_name_still_needs_the_bus(road: Road, harness: Harness) -> None:
    harness.next("focus_in")
    for given in ({"target": {"selector": {"name": "OK"}}, "key": "a"}, {"route": "Harness", "key": "a"}):
        assert await road.code("desktop.press", scope="desk", input=given) == "provider_unavailable"
    assert await road.code("desktop.observe", "Harness", scope="desk") == "provider_unavailable"
    assert [one for one in harness.quiet() if one["event"] == "key_down"] == []


@pytest.mark.parametrize("target", [None, "focused"])
async def test_an_observation_is_the_picture_alone(road: Road, harness: Harness, target: str | None) -> None:
    seen = await road.call("desktop.observe", target, scope="desk")
    assert (seen["data"]["route"], seen["data"]["evidence"]["nodes"]) == (None, [])
    assert seen["data"]["frameId"] and seen["data"]["evidence"]["screenshot"]["width"] > 0
    assert any("only the screenshot" in warning for warning in seen["warnings"])
    blind = await road.code("desktop.observe", scope="desk", options={"includeScreenshot": False})
    assert blind == "provider_unavailable"

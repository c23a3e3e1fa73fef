"""Applications that people have: LibreOffice, whose sheet says it has two thousand million cells, and Firefox."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from computer_linker.computer.base import Computer
from computer_linker.computer.local.probe import this_computer
from support.desktop import Desktop, missing
from support.road import Road, computer_scope

pytestmark = [pytest.mark.anyio, pytest.mark.desktop]
PAGE = Path(__file__).parents[2] / "fixtures" / "apps" / "page.html"
_PREFERENCES = """user_pref("browser.aboutwelcome.enabled", false);
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("browser.startup.homepage_override.mstone", "ignore");
user_pref("trailhead.firstrun.didSeeAboutWelcome", true);
user_pref("termsofuse.bypassNotification", true);
"""


@pytest.fixture
async def road(tmp_path: Path, desktop: Desktop) -> AsyncIterator[tuple[Road, Computer]]:
    computer = this_computer(desktop.env)
    # Applications look whether accessibility is on when they start.
    await computer.accessibility.applications()
    async with Road.open(tmp_path, scopes=[computer_scope()], computer=computer) as road:
        yield road, computer


async def waited(road: Road, app: str, **condition: Any) -> dict[str, Any]:
    return await road.data(
        "desktop.wait_until", {"app": app}, scope="desk", input={"condition": condition}, options={"timeoutSeconds": 60}
    )


async def test_a_spreadsheet_is_read_without_its_cells_and_a_cell_is_written(
    road: tuple[Road, Computer], desktop: Desktop
) -> None:
    if lack := missing("soffice"):
        pytest.skip(f"not installed: {', '.join(lack)} (libreoffice-calc and libreoffice-gtk3)")
    service, computer = road
    place = f"-env:UserInstallation=file://{desktop.folder / 'office'}"
    process = desktop.launch("soffice", place, "--calc", "--norestore", "--nologo", "--nolockcheck")
    cell = (await waited(service, "soffice", selectorExists={"role": "cell", "name": "A1"}))["elements"][0]
    tree = await service.data("ui.tree", "soffice", scope="desk", options={"maxDepth": 32, "maxNodes": 5000})
    assert "children" in tree["cutBy"]
    assert len(tree["nodes"]) > 100
    clicked = await service.call("desktop.click", cell["ref"], scope="desk")
    assert clicked["ok"], clicked
    await service.data("desktop.type_text", scope="desk", input={"text": "Zoe 42"})
    await service.data("desktop.press", scope="desk", input={"key": "enter"})
    await waited(service, "soffice", selectorExists={"role": "cell", "name": "A1", "valueContains": "Zoe 42"})
    # A capture does not take the cells that were not asked for a reason to hide the window.
    shot = await service.call("screen.capture", "primary", scope="desk", options={"return": "base64"})
    assert not any("painted over whole" in warning for warning in shot["warnings"])
    apps = await computer.accessibility.applications()
    assert await computer.accessibility.is_alive(next(one.id for one in apps if one.name == "soffice"))
    desktop.end(process)


async def test_a_page_in_firefox_is_found_and_pressed(road: tuple[Road, Computer], desktop: Desktop) -> None:
    if lack := missing("firefox-esr"):
        pytest.skip(f"not installed: {', '.join(lack)}")
    service, _computer = road
    profile = desktop.folder / "profile"
    profile.mkdir()
    (profile / "user.js").write_text(_PREFERENCES)
    process = desktop.launch("firefox-esr", "--no-remote", "--profile", str(profile), PAGE.as_uri())
    found = await waited(service, "Firefox", selectorExists={"role": "button", "name": "Press me"})
    pressed = await service.call("desktop.click", found["elements"][0]["ref"], scope="desk")
    assert pressed["ok"], pressed
    await waited(service, "Firefox", textAppears="clicks: 1")
    at = {"selector": {"role": "textbox", "name": "entry"}, "route": {"app": "Firefox"}}
    typed = await service.call("desktop.type_text", at, scope="desk", input={"text": "Zoë 你好 😀"})
    assert typed["effect"] == "confirmed", typed
    with anyio.fail_after(60):
        tree = await service.data("ui.tree", "Firefox", scope="desk", options={"maxDepth": 32})
    assert any(one.get("value") == "Zoë 你好 😀" for one in tree["nodes"])
    desktop.end(process)

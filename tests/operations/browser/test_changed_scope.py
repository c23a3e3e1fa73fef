"""What the owner takes away is gone at once, also for a browser that is open."""

from pathlib import Path
from typing import Any

import pytest

from computer_linker.config.schema import Config
from computer_linker.model.scope import Scope
from computer_linker.service.app import open_app
from support.pages import FORM, left_running, preparation_with
from support.road import Road, folder_scope
from support.web import web_server

pytestmark = [pytest.mark.anyio, pytest.mark.clients]


def _config(root: Path, **policy: Any) -> Config:
    scope = Scope.from_wire(folder_scope(root, "app", allowedCommands=["agent-browser *"], **policy))
    return Config(machine_id="test-machine", machine_name="test", scopes=[scope])


async def test_a_scope_that_loses_the_network_loses_its_browser(tmp_path: Path) -> None:
    root, home = tmp_path / "root", tmp_path / "home"
    root.mkdir()
    home.mkdir(mode=0o700)
    (root / "form.html").write_text(FORM)
    now = [_config(root, network=True)]
    with web_server() as port:
        async with open_app(home, lambda: now[0]) as app:
            preparation_with(app)
            road = Road(app, root, home)
            await road.data("browser.open", f"http://127.0.0.1:{port}/hello")
            now[0] = _config(root, network=False)
            assert await road.code("browser.text") == "process_not_found"
            assert await road.code("browser.open", f"http://127.0.0.1:{port}/hello") == "permission_denied"
            assert (await road.data("browser.open", "form.html"))["title"] == "A form"
    assert left_running(home) == []

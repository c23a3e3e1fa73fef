"""Evidence first: where it cannot be kept, nothing is done."""

import json
from typing import Any

import pytest

from support.bridge_host import Host
from support.forms import Form

pytestmark = [pytest.mark.anyio, pytest.mark.desktop]


@pytest.mark.parametrize("at", ["artifacts", "artifacts/desktop"])
async def test_an_act_without_a_place_for_its_evidence_is_not_done(live: Host, form: Form, at: str) -> None:
    params: dict[str, Any] = {
        "route": {"app": {"bundleId": form.app}},
        "target": {"selector": {"byRole": "AXButton", "titleContains": "Press me"}},
    }
    token = await live.token("desktop.click", **params)
    place = live.workspace / at
    place.parent.mkdir(exist_ok=True)
    place.write_text("in the way")
    before = len(form.events("clicked"))
    code = await live.client.code("desktop.click", confirm={"token": token}, **params)
    assert code == "DESKTOP_WORKSPACE_FORBIDDEN"
    assert len(form.events("clicked")) == before
    place.unlink()
    # The token was not spent by what never ran.
    assert (await live.client.result("desktop.click", confirm={"token": token}, **params))["clicked"] is True


async def test_a_password_is_in_no_evidence(live: Host, form: Form) -> None:
    params: dict[str, Any] = {
        "route": {"app": {"bundleId": form.app}},
        "target": {"selector": {"byRole": "AXSecureTextField", "titleContains": "secret"}},
        "text": "hunter2hunter2",
        "options": {"clearBefore": True},
    }
    await live.act("desktop.typeText", **params)
    await form.told("text", lambda one: one["field"] == "secret" and one["text"] == "hunter2hunter2")
    await live.client.result("desktop.observe", route=params["route"])
    for folder in live.evidence():
        for file in folder.iterdir():
            assert b"hunter2" not in file.read_bytes(), file.name
    tree = json.loads((live.evidence()[-1] / "ax.json").read_text())
    assert any(node["role"] == "password-text" for node in tree["nodes"])

"""A secret put into a page by name: into a password field of its own origin, and nowhere else."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from attacks.test_programs_through_the_gate import file_server
from computer_linker.vault.secret import StoredSecret
from computer_linker.vault.vault import Vault
from support.canary import CANARY, is_in
from support.pages import browser_road, ref_of
from support.road import Road

pytestmark = [pytest.mark.anyio, pytest.mark.clients]
PAGE = """<!doctype html><title>d</title>
<label>User <input id=user></label> <label>Pass <input id=pass type=password></label>
<button onclick="document.title='length '+pass.value.length">Count</button>
<button onclick="pass.type='text'">Reveal</button>
<button onclick="out.textContent=pass.value">Copy</button><p id=out></p>
"""


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[tuple[Road, int]]:
    served = tmp_path / "served"
    served.mkdir()
    (served / "index.html").write_text(PAGE)
    with file_server(served) as port:
        network = [f"localhost:{port}"]
        async with browser_road(tmp_path, network=network, secrets=["login", "elsewhere"]) as road:
            vault = road.app.services.use(Vault)
            for name, host in (("login", "localhost"), ("elsewhere", "127.0.0.1"), ("forbidden", "localhost")):
                made = StoredSecret(name=name, scheme="http", host=host, port=port, variable="X", value=CANARY)
                vault.add(made, replace=False)
            await road.data("browser.open", f"http://localhost:{port}/")
            yield road, port


async def test_a_password_field_of_its_origin_takes_it_and_nothing_shows_it(opened: tuple[Road, int]) -> None:
    road, _ = opened
    filled = await road.call("browser.fill", await ref_of(road, "textbox", "Pass"), input={"text": {"secret": "login"}})
    assert filled["ok"] and filled["effect"] == "confirmed", filled
    counted = await road.data("browser.click", await ref_of(road, "button", "Count"))
    assert counted["title"] == f"length {len(CANARY)}"
    assert (await road.call("browser.screenshot"))["ok"]
    await road.data("browser.click", await ref_of(road, "button", "Copy"))
    for op in ("browser.snapshot", "browser.text", "history.last"):
        found = await road.call(op, *([""] if op == "history.last" else []))
        assert found["ok"] and not is_in(json.dumps(found)), (op, found)
    assert not is_in(json.dumps(filled))
    kept = [path for path in road.home.rglob("*") if path.is_file() and "secrets" not in path.name]
    assert not any(is_in(path.read_bytes()) for path in kept if path.suffix not in (".png",))


async def test_no_picture_and_no_recording_of_a_page_that_shows_it(opened: tuple[Road, int]) -> None:
    road, _ = opened
    await road.data("browser.fill", await ref_of(road, "textbox", "Pass"), input={"text": {"secret": "login"}})
    await road.data("browser.click", await ref_of(road, "button", "Reveal"), options={"verify": False})
    assert await road.code("browser.screenshot") == "conflict"
    assert await road.code("browser.pdf") == "conflict"
    for op in ("browser.har", "browser.trace", "browser.record"):
        assert await road.code(op, "start") == "conflict", op


async def test_it_is_not_put_while_a_recording_runs(opened: tuple[Road, int]) -> None:
    road, _ = opened
    await road.data("browser.har", "start")
    field = await ref_of(road, "textbox", "Pass")
    assert await road.code("browser.fill", field, input={"text": {"secret": "login"}}) == "conflict"
    assert (await road.data("browser.click", await ref_of(road, "button", "Count")))["title"] == "length 0"


@pytest.mark.parametrize(
    ("field", "name", "code"),
    [
        ("User", "login", "conflict"),
        ("Pass", "elsewhere", "permission_denied"),
        ("Pass", "forbidden", "permission_denied"),
        ("Pass", "unknown", "permission_denied"),
    ],
)
async def test_no_other_field_origin_or_scope_gets_it(
    opened: tuple[Road, int], field: str, name: str, code: str
) -> None:
    road, _ = opened
    at = await ref_of(road, "textbox", field)
    assert await road.code("browser.fill", at, input={"text": {"secret": name}}) == code
    assert (await road.data("browser.click", await ref_of(road, "button", "Count")))["title"] == "length 0"

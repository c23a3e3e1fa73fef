"""A secret put into a page by name: into a password field of its own origin, and nowhere else."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from attacks.test_programs_through_the_gate import file_server
from computer_linker.providers.browser.browsers import Browsers
from computer_linker.providers.browser.secret_field import put_secret
from computer_linker.vault.secret import StoredSecret
from computer_linker.vault.vault import Vault
from support.canary import CANARY, is_in
from support.pages import browser_road, ref_of
from support.road import LOCAL, Road

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
        network = [f"localhost:{port}", f"127.0.0.1:{port}"]
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


FIELD = "<label>Pass <input id=pass type=password></label>"
REVEAL = "<button onclick=\"field().type='text'\">Reveal</button>"
SHADOW = f"""<!doctype html><title>d</title><div id=host></div><script>
const root = host.attachShadow({{mode: 'open'}}); root.innerHTML = '{FIELD}'; const field = () => root.querySelector('input');
</script>{REVEAL}"""
FRAME = f"""<!doctype html><title>d</title><iframe id=frame srcdoc='{FIELD}'></iframe>
<script>const field = () => frame.contentDocument.querySelector('input')</script>{REVEAL}"""
SHORT = "<!doctype html><title>d</title><label>Pass <input id=pass type=password maxlength=9></label>" + (
    "<button onclick=\"document.title='length '+pass.value.length\">Count</button>"
)


async def _at(opened: tuple[Road, int], name: str, page: str) -> Road:
    road, port = opened
    (road.root.parent / "served" / f"{name}.html").write_text(page)
    await road.data("browser.open", f"http://localhost:{port}/{name}.html")
    return road


@pytest.mark.parametrize("page", [SHADOW, FRAME], ids=["shadow", "frame"])
async def test_no_picture_of_a_field_in_a_component_or_a_frame(opened: tuple[Road, int], page: str) -> None:
    """Found: only the page's own fields were looked at."""
    road = await _at(opened, "inner", page)
    await road.data("browser.fill", await ref_of(road, "textbox", "Pass"), input={"text": {"secret": "login"}})
    await road.data("browser.click", await ref_of(road, "button", "Reveal"), options={"verify": False})
    assert await road.code("browser.screenshot") == "conflict"
    assert await road.code("browser.pdf") == "conflict"
    assert not is_in(json.dumps(await road.call("browser.snapshot")))


@pytest.mark.parametrize("key", ["Backspace", "Delete", "x", "Control+a", "Control+c", "Control+x"])
async def test_no_key_leaves_a_part_of_it(opened: tuple[Road, int], key: str) -> None:
    """Found: after one Backspace the rest of the secret was masked nowhere, and the page showed it on a click."""
    road, _ = opened
    field = await ref_of(road, "textbox", "Pass")
    await road.data("browser.fill", field, input={"text": {"secret": "login"}})
    assert await road.code("browser.press", field, input={"key": key}) == "conflict"
    counted = await road.data("browser.click", await ref_of(road, "button", "Count"))
    assert counted["title"] == f"length {len(CANARY)}"
    await road.data("browser.press", field, input={"key": "Tab"}, options={"verify": False})
    await road.data("browser.press", await ref_of(road, "textbox", "User"), input={"key": "x"})


async def test_a_field_that_takes_only_a_part_of_it_is_emptied(opened: tuple[Road, int]) -> None:
    road = await _at(opened, "short", SHORT)
    field = await ref_of(road, "textbox", "Pass")
    assert await road.code("browser.fill", field, input={"text": {"secret": "login"}}) == "conflict"
    assert (await road.data("browser.click", await ref_of(road, "button", "Count")))["title"] == "length 0"


async def test_a_page_that_is_left_meanwhile_gets_nothing(opened: tuple[Road, int]) -> None:
    """Found: the address was read first and the field filled after, so that a page loaded in between got the secret."""
    road, port = opened
    field = await ref_of(road, "textbox", "Pass")
    session = road.app.services.use(Browsers).find(road.app.config.scopes[0], LOCAL)
    script = put_secret(f"http://localhost:{port}", CANARY)
    # What the other origin's page can do at best: be there, with its own field focused and every function replaced.
    await session.ask(("open", f"http://127.0.0.1:{port}/"), ("focus", "#pass"), ("eval", HOSTILE))
    (done,) = await session.ask(("eval", script))
    (held,) = await session.ask(("eval", "JSON.stringify([pass.value, window.stolen])"))
    assert done["result"] == "elsewhere" and not is_in(json.dumps(held)), held
    assert await road.code("browser.fill", field, input={"text": {"secret": "login"}}) in (
        "stale_reference",
        "permission_denied",
    )


HOSTILE = """(() => {
  window.stolen = [];
  Error.prepareStackTrace = (e, sites) => { for (const s of sites) window.stolen.push(String(s.getFunction())); return ''; };
  for (const at of [Object, Array, String, Symbol, WeakSet, HTMLInputElement, Document, Node])
    for (const name of Object.getOwnPropertyNames(at.prototype)) try {
      const was = Object.getOwnPropertyDescriptor(at.prototype, name);
      if (typeof was.value === 'function' && name !== 'constructor') at.prototype[name] = function (...a) {
        window.stolen.push(...a.map(String)); new Error().stack; return was.value.apply(this, a); };
    } catch (e) {}
  return 'ready';
})()"""

"""Every kind of form control: what takes no text is refused before anything is typed, and each has an operation of its own."""

from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from computer_linker.approvals.approvals import Approvals
from support.pages import browser_road, ref_of
from support.road import Road

pytestmark = [pytest.mark.anyio, pytest.mark.clients]

PAGE = """<!doctype html><title>d</title>
<label>First <input id=first value=kept></label>
<label>File <input type=file id=file></label> <label>Many <input type=file multiple id=many></label>
<label><input type=checkbox id=box>Agree</label> <label><input type=checkbox id=off disabled>Off</label>
<label><input type=radio name=r value=red checked>Red</label> <label><input type=radio name=r value=blue>Blue</label>
<label>Day <input type=date id=day></label> <label>Hour <input type=time id=hour></label>
<label>Range <input type=range id=range></label> <label>Number <input type=number id=number></label>
<label>Size <select id=size><option value=1>Small<option value=2>Large</select></label>
<label>Sizes <select multiple id=sizes><option value=1>S<option value=2>L<option value=3>XL</select></label>
<button type=button>Push</button> <label>Fixed <input readonly id=fixed value=fixed></label>
<label>Grey <input disabled id=grey value=grey></label> <div role=textbox aria-label=Dead>dead</div>
<div role=combobox tabindex=0 aria-label=Fake>fake</div> <a href=#x>link</a>
<input list=names id=named aria-label=Named><datalist id=names><option value=one></datalist>
<button type=button onclick="tell()">Tell</button><p id=out></p>
<script>
const at = id => document.getElementById(id);
let changed = '';
document.addEventListener('change', event => { changed += event.target.id + ' ' });
async function tell() {
  const texts = ['first', 'day', 'hour', 'range', 'number', 'size', 'fixed', 'grey', 'named'].map(id => id + '=' + at(id).value);
  const files = await Promise.all([...at('file').files, ...at('many').files].map(async one => one.name + ':' + await one.text()));
  const sizes = [...at('sizes').selectedOptions].map(one => one.text).join('+');
  const radio = document.querySelector('input[name=r]:checked').value;
  at('out').textContent = [...texts, 'files=' + files.join(','), 'box=' + at('box').checked, 'off=' + at('off').checked,
    'radio=' + radio, 'sizes=' + sizes, 'changed=' + changed].join(';') + ';end';
}
</script>
"""


async def _opened(road: Road) -> None:
    (road.root / "d.html").write_text(PAGE)
    await road.data("browser.open", "d.html")


async def _told(road: Road) -> dict[str, str]:
    """What the page itself says its controls hold."""
    await road.data("browser.click", await ref_of(road, "button", "Tell"))
    text: str = (await road.data("browser.text"))["text"]
    line = next(line for line in text.splitlines() if line.startswith("first="))
    return dict(part.split("=", 1) for part in line.split(";") if "=" in part)


async def test_what_takes_no_text_is_refused_and_nothing_is_typed(tmp_path: Path) -> None:
    async with browser_road(tmp_path) as road:
        await _opened(road)
        await road.data("browser.click", await ref_of(road, "textbox", "First"))
        dead = [
            *(("button", name) for name in ("File", "Push")), ("checkbox", "Agree"), ("radio", "Blue"), ("link", "link"),
            ("slider", "Range"), ("textbox", "Fixed"), ("textbox", "Grey"), ("textbox", "Dead"), ("combobox", "Fake"),
            ("spinbutton", "Day Day"),
        ]  # fmt: skip
        for role, name in dead:
            reply = await road.call("browser.fill", await ref_of(road, role, name), input={"text": "typed"})
            assert reply.get("error", {}).get("code") == "conflict", (role, name, reply)
        told = await _told(road)
        assert "typed" not in str(told)
        assert (told["first"], told["fixed"], told["grey"], told["range"]) == ("kept", "fixed", "grey", "50")
        assert (told["day"], told["changed"]) == ("", "")


async def test_text_numbers_and_named_choices_are_filled(tmp_path: Path) -> None:
    async with browser_road(tmp_path) as road:
        await _opened(road)
        for role, name, text in (
            ("textbox", "First", "Zoë"),
            ("spinbutton", "Number", "12"),
            ("combobox", "Named", "one"),
        ):
            filled = await road.call("browser.fill", await ref_of(road, role, name), input={"text": text})
            assert filled.get("effect") == "confirmed", filled
        told = await _told(road)
        assert (told["first"], told["number"], told["named"]) == ("Zoë", "12", "one")


async def test_choices_are_selected_and_read_back(tmp_path: Path) -> None:
    async with browser_road(tmp_path) as road:
        await _opened(road)
        one = await _done(road, "browser.select", "combobox", "Size", {"options": ["Large"]})
        assert one["effect"] == "confirmed", one
        two = await _done(road, "browser.select", "listbox", "Sizes", {"options": ["S", "XL"]})
        assert two["effect"] == "confirmed", two
        none = await _done(road, "browser.select", "combobox", "Size", {"options": ["Nowhere"]})
        assert none["error"]["code"] == "not_found", none
        several = await _done(road, "browser.select", "combobox", "Size", {"options": ["Small", "Large"]})
        assert several["error"]["code"] == "conflict", several
        fake = await _done(road, "browser.select", "combobox", "Fake", {"options": ["Large"]})
        assert fake["error"]["code"] == "conflict", fake
        told = await _told(road)
        assert (told["size"], told["sizes"]) == ("2", "S+XL")


async def test_boxes_are_checked_and_unchecked(tmp_path: Path) -> None:
    async with browser_road(tmp_path) as road:
        await _opened(road)
        for on in (True, True, False, True):
            reply = await _done(road, "browser.check", "checkbox", "Agree", {"checked": on})
            assert reply.get("effect") == "confirmed", reply
        assert (await _done(road, "browser.check", "radio", "Blue", {}))["effect"] == "confirmed"
        refused = [
            await _done(road, "browser.check", "radio", "Blue", {"checked": False}),
            await _done(road, "browser.check", "checkbox", "Off", {}),
            await _done(road, "browser.check", "button", "Push", {}),
        ]
        assert [one["error"]["code"] for one in refused] == ["conflict"] * 3
        told = await _told(road)
        assert (told["box"], told["off"], told["radio"]) == ("true", "false", "blue")


async def test_dates_and_times_are_set_by_any_of_their_parts(tmp_path: Path) -> None:
    async with browser_road(tmp_path) as road:
        await _opened(road)
        day = await _done(road, "browser.date", "spinbutton", "Day Day", {"value": "2026-11-16"})
        assert day.get("effect") == "confirmed", day
        hour = await _done(road, "browser.date", "spinbutton", "Hours Hours", {"value": "13:45"})
        assert hour.get("effect") == "confirmed", hour
        wrong = await _done(road, "browser.date", "spinbutton", "Day Day", {"value": "2026-13-77"})
        assert wrong["error"]["code"] == "invalid_request", wrong
        text = await _done(road, "browser.date", "textbox", "First", {"value": "2026-11-16"})
        assert text["error"]["code"] == "conflict", text
        told = await _told(road)
        assert (told["day"], told["hour"], told["first"], told["changed"]) == (
            "2026-11-16",
            "13:45",
            "kept",
            "day hour ",
        )


async def test_only_files_of_the_scope_are_uploaded(tmp_path: Path) -> None:
    async with browser_road(tmp_path) as road:
        await _opened(road)
        (road.root / "a.txt").write_text("alpha")
        (road.root / "b.txt").write_text("beta")
        (road.root / ".env").write_text("SECRET")
        (tmp_path / "outside.txt").write_text("outside")
        (road.root / "way-out.txt").symlink_to(tmp_path / "outside.txt")
        (road.root / "folder").mkdir()
        codes = {}
        for name in ("../outside.txt", str(tmp_path / "outside.txt"), ".env", "way-out.txt", "missing.txt", "folder"):
            reply = await _done(road, "browser.upload", "button", "File", {"files": [name]})
            assert not reply["ok"], (name, reply)
            codes[name] = reply["error"]["code"]
        assert (codes["../outside.txt"], codes["way-out.txt"]) == ("path_out_of_scope", "path_out_of_scope"), codes
        for role, name in (("textbox", "First"), ("button", "Push")):
            refused = await _done(road, "browser.upload", role, name, {"files": ["a.txt"]})
            assert refused["error"]["code"] == "conflict", refused
        several = await _done(road, "browser.upload", "button", "File", {"files": ["a.txt", "b.txt"]})
        assert several["error"]["code"] == "conflict", several
        assert (await _told(road))["files"] == ""
        assert (await _done(road, "browser.upload", "button", "File", {"files": ["a.txt"]}))["effect"] == "confirmed"
        assert (await _done(road, "browser.upload", "button", "Many", {"files": ["a.txt", "b.txt"]}))[
            "effect"
        ] == "confirmed"
        assert (await _told(road))["files"] == "a.txt:alpha,a.txt:alpha,b.txt:beta"


async def test_a_yes_to_an_upload_is_held_to_the_files_that_were_shown(tmp_path: Path) -> None:
    async with browser_road(tmp_path, confirm="act") as road:
        people = road.app.services.use(Approvals)
        await _opened(road)
        report = road.root / "report.txt"
        report.write_text("harmless")
        target = await ref_of(road, "button", "File")
        parts: dict[str, Any] = {"input": {"files": ["report.txt"]}}
        assert await road.code("browser.upload", target, **parts) == "confirm_required"
        [asked] = people.waiting()
        assert sha256(b"harmless").hexdigest() in asked.text, asked.text
        assert people.answer(asked.id, "yes")
        report.write_text("a secret")
        refused = await road.call("browser.upload", target, **parts)
        assert refused["error"]["code"] == "conflict", refused
        assert refused["error"]["details"]["changed"] == ["report.txt"]
        assert await road.code("browser.upload", target, **parts) == "confirm_required"
        assert people.answer(people.waiting()[0].id, "yes")
        assert (await road.call("browser.upload", target, **parts))["effect"] == "confirmed"


async def _done(road: Road, op: str, role: str, name: str, input: dict[str, Any]) -> dict[str, Any]:
    refs = [
        node["ref"]
        for node in (await road.data("browser.snapshot"))["nodes"]
        if (node["role"], node["name"]) == (role, name)
    ]
    assert refs, (role, name)
    return await road.call(op, refs[0], input=input)

"""Before an act on a page, a person sees which element of which page it is for."""

from pathlib import Path

import pytest

from computer_linker.approvals.approvals import Approvals
from support.pages import browser_road, ref_of

pytestmark = [pytest.mark.anyio, pytest.mark.clients]


async def test_a_person_sees_the_element_and_the_page_and_not_only_a_reference(tmp_path: Path) -> None:
    async with browser_road(tmp_path, confirm="act") as road:
        people = road.app.services.use(Approvals)
        await road.data("browser.open", "form.html")
        send = await ref_of(road, "button", "Send")
        refused = await road.call("browser.click", send)
        assert refused["error"]["code"] == "confirm_required"
        [asked] = people.waiting()
        assert asked.about is not None
        assert asked.about.lines == ('the button "Send"', 'on the page "A form" at form.html')
        assert (await road.data("browser.text"))["title"] == "A form", "nothing was clicked"
        people.answer(asked.id, "yes")
        sent = await road.call("browser.click", send)
        assert (sent["effect"], sent["data"]["title"]) == ("confirmed", "Sent")


async def test_an_act_that_no_yes_could_make_happen_is_refused_unasked(tmp_path: Path) -> None:
    async with browser_road(tmp_path, confirm="act") as road:
        await road.data("browser.open", "form.html")
        send = await ref_of(road, "button", "Send")
        wrong = [
            ("browser.fill", {"text": "x"}),
            ("browser.check", {"checked": True}),
            ("browser.select", {"options": ["x"]}),
        ]
        for op, given in wrong:
            assert await road.code(op, send, input=given) == "conflict", op
        name = await ref_of(road, "textbox", "Name")
        assert await road.code("browser.upload", name, input={"files": ["form.html"]}) == "conflict"
        assert await road.code("browser.click", "e99.zzzz") in (
            "stale_reference",
            "element_not_found",
            "invalid_request",
        )
        await road.data("browser.open", "two.html")
        assert await road.code("browser.click", send) == "stale_reference"
        assert road.app.services.use(Approvals).waiting() == []

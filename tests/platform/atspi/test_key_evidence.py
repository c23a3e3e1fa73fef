"""Evidence for the effect of keys comes only from a field that can be read before and after them."""

import pytest

from computer_linker.computer.base import Computer
from computer_linker.providers.ui.witness import evidence_of
from support.forms import Form, frozen, on_the_bus

pytestmark = [pytest.mark.anyio, pytest.mark.desktop]


@pytest.mark.parametrize("form", ["gtk3"], indirect=True)
async def test_an_application_that_hangs_shows_no_effect(computer: Computer, form: Form) -> None:
    reader = computer.accessibility
    app = await on_the_bus(computer, form)
    entry = next(one for one in (await reader.tree(app.root)).elements if one.name == "entry")
    has_effect = await evidence_of(reader, entry, ["a"])
    assert has_effect is not None and not await has_effect()
    with frozen(form):
        assert not await has_effect()
        assert await evidence_of(reader, entry, ["a"]) is None, "what is readable later was not changed by the key"
    await reader.set_text(entry.id, "changed")
    assert await has_effect()

"""GNOME's and KDE's compositors without a screen: what they let a program do works, and the rest says why and what helps."""

from collections.abc import AsyncIterator, Iterator

import pytest

from computer_linker.computer.base import Computer
from computer_linker.computer.local.probe import this_computer
from computer_linker.errors import LinkError
from computer_linker.model.geometry import Point, Rect
from support.compositors import compositor
from support.desktop import Desktop, missing
from support.forms import lacking, on_the_bus, open_form

pytestmark = [pytest.mark.anyio, pytest.mark.desktop]
_HONEST = ("unsupported_platform", "os_permission_required", "provider_unavailable")


@pytest.fixture(scope="module", params=["mutter", "kwin_wayland"])
def desktop(request: pytest.FixtureRequest) -> Iterator[Desktop]:
    if lack := missing(request.param, "dbus-daemon"):
        pytest.skip(f"not installed: {', '.join(lack)}")
    with compositor(request.param) as opened:
        yield opened


@pytest.fixture
async def computer(desktop: Desktop) -> AsyncIterator[Computer]:
    opened = this_computer(desktop.env)
    yield opened
    await opened.aclose()


async def test_the_display_is_told(computer: Computer) -> None:
    (display,) = await computer.screen.displays()
    assert (display.bounds, display.scale) == (Rect(x=0, y=0, width=1280, height=800), 1.0)


async def test_what_the_compositor_keeps_to_itself_is_refused_with_a_remedy(computer: Computer) -> None:
    for act in (
        computer.screen.capture,
        lambda: computer.click(Point(x=10, y=10)),
        lambda: computer.keyboard.type_text("a"),
        computer.windows.list,
    ):
        with pytest.raises(LinkError) as caught:
            await act()
        assert caught.value.code in _HONEST
    facets = computer.capabilities().facets
    for name in ("pointer", "keyboard", "windows", "apps"):
        assert facets[name].state != "present"
        assert facets[name].reason
        assert facets[name].remedy
    assert facets["screen"].is_proven is False


async def test_controls_are_read_and_set_without_bounds_nobody_knows(computer: Computer, desktop: Desktop) -> None:
    if lack := lacking("gtk3"):
        pytest.skip(f"not installed: {lack}")
    form = open_form(desktop, "gtk3")
    app = await on_the_bus(computer, form)
    tree = await computer.accessibility.tree(app.root)
    entry = next(one for one in tree.elements if one.name == "entry")
    assert entry.bounds is None
    assert await computer.accessibility.set_text(entry.id, "Zoë 你好 😀")
    await form.told("text", lambda one: one["text"] == "Zoë 你好 😀")
    assert form.process is not None
    desktop.end(form.process)

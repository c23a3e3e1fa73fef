"""The accessibility facet's promises, on the same form simulated, on X11 and on sway."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

import anyio
import pytest

from computer_linker.computer.base import Computer
from computer_linker.computer.facets.accessibility import Accessibility, Application, Element, ElementId, TreeLimits
from computer_linker.computer.local.probe import this_computer
from computer_linker.computer.simulated import SimulatedComputer, SimulatedControl
from computer_linker.errors import ElementNotFound
from computer_linker.model.geometry import Rect
from support.desktop import Desktop, missing, x11_desktop
from support.forms import lacking, on_the_bus, open_form
from support.sway import sway_desktop
from support.waiting import until_awaited

pytestmark = pytest.mark.anyio
_CONTROLS = (
    SimulatedControl("push-button", "Press me", Rect(x=10, y=10, width=100, height=30)),
    SimulatedControl("push-button", "Forbidden", Rect(x=10, y=50, width=100, height=30), is_enabled=False),
    SimulatedControl("text", "entry", Rect(x=10, y=90, width=200, height=30), text=""),
    SimulatedControl("password-text", "secret", Rect(x=10, y=130, width=200, height=30), text=""),
    SimulatedControl("check-box", "check it", Rect(x=10, y=170, width=100, height=30), is_checked=False),
    SimulatedControl("slider", "slide", Rect(x=10, y=210, width=200, height=30), value=0.0),
)


@dataclass
class Scene:
    """An application with a form, on some computer."""

    computer: Computer
    app: Application

    @property
    def reader(self) -> Accessibility:
        return self.computer.accessibility

    async def named(self, name: str) -> Element:
        """The control of that name."""
        return next(one for one in (await self.reader.tree(self.app.root)).elements if one.name == name)


@pytest.fixture(scope="module")
def x11(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desktop]:
    if lack := missing():
        pytest.skip(f"not installed: {', '.join(lack)}")
    with x11_desktop(tmp_path_factory.mktemp("x11")) as desktop:
        yield desktop


@pytest.fixture(scope="module")
def sway() -> Iterator[Desktop]:
    if lack := missing("sway", "dbus-daemon"):
        pytest.skip(f"not installed: {', '.join(lack)}")
    with sway_desktop(with_bus=True) as desktop:
        yield desktop


@pytest.fixture(
    params=["simulated", *(pytest.param(one, marks=pytest.mark.desktop) for one in ("x11-qt6", "x11-gtk3", "sway-qt6"))]
)
async def scene(request: pytest.FixtureRequest) -> AsyncIterator[Scene]:
    if request.param == "simulated":
        simulated = SimulatedComputer()
        window = simulated.world.open("form", "Form", Rect(x=100, y=100, width=400, height=300))
        window.controls = [SimulatedControl(**vars(one)) for one in _CONTROLS]
        (app,) = await simulated.accessibility.applications()
        yield Scene(simulated, app)
        return
    where, toolkit = request.param.split("-")
    if lack := lacking(toolkit):
        pytest.skip(f"not installed: {lack}")
    desktop: Desktop = request.getfixturevalue(where)
    form = open_form(desktop, toolkit)
    computer = this_computer(desktop.env)
    yield Scene(computer, await on_the_bus(computer, form))
    await computer.aclose()
    assert form.process is not None
    desktop.end(form.process)


async def test_an_application_is_listed_with_its_process_and_window(scene: Scene) -> None:
    assert scene.app.pid is not None
    (window,) = [one for one in scene.app.windows if one.role == "frame"]
    assert window.name
    assert window.parent == scene.app.root


async def test_a_tree_has_parents_before_children_and_bounds_inside_the_window(scene: Scene) -> None:
    tree = await scene.reader.tree(scene.app.root)
    seen: set[ElementId] = set()
    for one in tree.elements:
        assert one.parent is None or one.parent in seen
        seen.add(one.id)
    (window,) = [one for one in await scene.computer.windows.list() if one.pid == scene.app.pid]
    button = await scene.named("Press me")
    assert button.bounds is not None
    assert button.bounds.intersection(window.bounds) == button.bounds
    assert not tree.truncated


async def test_a_limit_on_nodes_is_kept_and_told(scene: Scene) -> None:
    tree = await scene.reader.tree(scene.app.root, TreeLimits(max_nodes=3))
    assert len(tree.elements) == 3
    assert "nodes" in tree.cut_by


async def test_one_element_is_what_the_tree_said(scene: Scene) -> None:
    known = await scene.named("Forbidden")
    again = await scene.reader.element(known.id)
    assert (again.id, again.role, again.name, again.bounds) == (known.id, known.role, known.name, known.bounds)
    assert not {"enabled", "sensitive"}.intersection(again.states)
    above = await scene.reader.ancestors(known.id)
    assert above[-1].role == "frame"


@pytest.mark.parametrize("text", ["Zoë 你好 😀", "", "two\nlines"])
async def test_a_text_that_was_set_is_read_back(scene: Scene, text: str) -> None:
    entry = await scene.named("entry")
    wanted = text.replace("\n", " ")
    assert await scene.reader.set_text(entry.id, wanted, caret=len(wanted))
    assert await scene.reader.text(entry.id) == wanted
    assert await scene.reader.text_length(entry.id) == len(wanted)
    assert (await scene.reader.element(entry.id)).value == wanted


async def test_a_place_in_a_text_is_counted_in_characters(scene: Scene) -> None:
    entry = await scene.named("entry")
    assert await scene.reader.set_text(entry.id, "😀a😀b", caret=3)
    if not isinstance(scene.computer, SimulatedComputer):
        assert await scene.reader.caret(entry.id) == (3, 3)
    assert await scene.reader.set_text(entry.id, "😀a😀b", caret=4)
    assert await scene.reader.caret(entry.id) == (4, 4)


async def test_a_password_is_never_read_but_its_length_is_known(scene: Scene) -> None:
    tree = await scene.reader.tree(scene.app.root)
    field = next(one for one in tree.elements if one.is_password and "EditableText" in one.interfaces)
    assert await scene.reader.set_text(field.id, "hunter2")
    assert await scene.reader.text(field.id) is None
    assert await scene.reader.text_length(field.id) == 7
    tree = await scene.reader.tree(scene.app.root)
    assert all("hunter2" not in (one.value or "") + one.name for one in tree.elements)


async def test_an_action_is_done_and_heard_of(scene: Scene) -> None:
    box = await scene.named("check it")
    assert "checked" not in box.states
    async with scene.reader.changes() as changes:
        assert await scene.reader.actions(box.id)
        assert await scene.reader.perform(box.id)
        with anyio.fail_after(60):
            while True:
                assert await changes.wait(10)
                if any(one.app == scene.app.id for one in changes.taken()):
                    break

    async def is_checked() -> bool:
        return "checked" in (await scene.reader.element(box.id)).states

    await until_awaited(is_checked)


async def test_the_focus_is_given_and_found(scene: Scene) -> None:
    entry = await scene.named("entry")

    async def has_it() -> bool:
        await scene.reader.focus(entry.id)
        found = await scene.reader.focused(scene.app.id)
        return found is not None and found.id == entry.id

    await until_awaited(has_it)
    assert "focused" in (await scene.reader.element(entry.id)).states


async def test_what_is_not_there_is_not_found(scene: Scene) -> None:
    for at in (ElementId(scene.app.id, "/org/a11y/atspi/accessible/99999"), ElementId(":1.999999", "/nothing")):
        with pytest.raises(ElementNotFound):
            await scene.reader.element(at)
    assert await scene.reader.is_alive(scene.app.id)


async def test_a_slider_is_set_and_its_value_told(scene: Scene) -> None:
    slider = await scene.named("slide")
    if "Value" not in slider.interfaces:
        pytest.skip("this toolkit's slider has no value to set")
    assert await scene.reader.set_value(slider.id, 40) == 40

"""Trees of real toolkits: complete, placed where they show, in bulk and by single calls alike."""

import pytest

from computer_linker.computer.base import Computer
from computer_linker.computer.facets.accessibility import Element, ElementId, Tree, TreeLimits
from computer_linker.errors import ElementNotFound
from support.forms import Form, on_the_bus

pytestmark = [pytest.mark.anyio, pytest.mark.desktop]


def named(tree: Tree, name: str, *roles: str) -> Element:
    return next(one for one in tree.elements if one.name == name and (not roles or one.role in roles))


def shape(tree: Tree) -> dict[ElementId, tuple[str, str, ElementId | None]]:
    return {one.id: (one.role, one.name.partition(" - Memory usage")[0], one.parent) for one in tree.elements}


async def test_the_form_describes_its_controls(computer: Computer, form: Form) -> None:
    app = await on_the_bus(computer, form)
    tree = await computer.accessibility.tree(app.root)
    assert not tree.truncated
    press = named(tree, "Press me", "push-button")
    assert press.has("enabled") or press.has("sensitive")
    assert "Action" in press.interfaces
    forbidden = named(tree, "Forbidden", "push-button")
    assert not {"enabled", "sensitive"}.intersection(forbidden.states)


async def test_bulk_and_single_calls_give_the_same_tree(computer: Computer, form: Form) -> None:
    app = await on_the_bus(computer, form)
    quick = await computer.accessibility.tree(app.root, TreeLimits(bounds=False, values=False))
    slow = await computer.accessibility.tree(app.root, TreeLimits(bounds=False, values=False, bulk=False))
    ours, theirs = shape(quick), shape(slow)
    assert len(ours) > 50
    assert {at for at in theirs if at not in ours} == set()
    assert {at: theirs[at] for at in ours if at in theirs} == {at: ours[at] for at in ours if at in theirs}


async def test_bounds_lie_inside_the_window(computer: Computer, form: Form) -> None:
    app = await on_the_bus(computer, form)
    tree = await computer.accessibility.tree(app.root)
    windows = await computer.windows.list()
    window = next(one for one in windows if one.pid == app.pid)
    press = named(tree, "Press me", "push-button")
    assert press.bounds is not None
    assert press.bounds.intersection(window.bounds) == press.bounds
    again = await computer.accessibility.element(press.id)
    assert again.bounds == press.bounds


async def test_reading_order_puts_parents_first(computer: Computer, form: Form) -> None:
    tree = await computer.accessibility.tree((await on_the_bus(computer, form)).root)
    seen: set[ElementId] = set()
    for one in tree.elements:
        assert one is tree.elements[0] or one.parent in seen
        seen.add(one.id)


async def test_a_cut_tree_says_so(computer: Computer, form: Form) -> None:
    app = await on_the_bus(computer, form)
    few = await computer.accessibility.tree(app.root, TreeLimits(max_nodes=10))
    assert len(few.elements) == 10
    assert few.cut_by == ("nodes",)
    flat = await computer.accessibility.tree(app.root, TreeLimits(max_depth=1))
    assert "depth" in flat.cut_by
    assert {one.parent for one in flat.elements} == {None, app.root}


async def test_an_element_that_is_gone_is_not_found(computer: Computer, form: Form) -> None:
    app = await on_the_bus(computer, form)
    with pytest.raises(ElementNotFound):
        await computer.accessibility.element(ElementId(app.id, "/org/a11y/atspi/accessible/999999"))
    with pytest.raises(ElementNotFound):
        await computer.accessibility.element(ElementId(":1.9999", app.root.path))


async def test_a_password_is_never_read(computer: Computer, form: Form) -> None:
    app = await on_the_bus(computer, form)
    tree = await computer.accessibility.tree(app.root)
    secret = named(tree, "secret", "password-text")
    await computer.accessibility.set_text(secret.id, "hunter2")
    again = await computer.accessibility.tree(app.root)
    assert named(again, "secret", "password-text").value is None
    assert await computer.accessibility.text(secret.id) is None


async def test_the_focused_element_is_found(computer: Computer, form: Form) -> None:
    app = await on_the_bus(computer, form)
    window = next(one for one in await computer.windows.list() if one.pid == app.pid)
    await computer.windows.focus(window.id)
    tree = await computer.accessibility.tree(app.root)
    entry = named(tree, "entry")
    assert entry.bounds is not None
    await computer.pointer.click(entry.bounds.center)
    async with computer.accessibility.changes() as changes:
        for _ in range(40):
            focused = await computer.accessibility.focused()
            if focused is not None and focused.id == entry.id:
                break
            await changes.wait(0.1)
    assert focused is not None
    assert focused.id == entry.id

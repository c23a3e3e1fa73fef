"""Outlines and selectors: short, safe to show, and meaning what they say."""

import pytest

from computer_linker.computer.facets.accessibility import Application, Element, ElementId
from computer_linker.providers.ui.outline import outline, shown_text
from computer_linker.providers.ui.roles import roles_called
from computer_linker.providers.ui.view import Selector, select

APP = Application(":1.1", "app", 1, "GTK", "4.8", ElementId(":1.1", "/root"))
ON = ("sensitive", "visible")


def tree(*rows: tuple[str, str | None, str, str]) -> list[Element]:
    """Elements from rows of path, parent, role and name."""
    return [
        Element(ElementId(":1.1", path), None if parent is None else ElementId(":1.1", parent), role, name, ON)
        for path, parent, role, name in rows
    ]


FORM = tree(
    ("/w", None, "frame", "Window"),
    ("/p", "/w", "panel", ""),
    ("/b", "/p", "push-button", "Send Send"),
    ("/l", "/b", "label", "Send"),
    ("/i", "/p", "list-item", ""),
    ("/k", "/i", "label", "item 1"),
    ("/m", "/p", "push-button", ""),
    ("/n", "/m", "push-button", "File"),
    ("/s", "/p", "separator", ""),
)


def names(elements: list[Element], **more: bool) -> list[tuple[str, str, int]]:
    return [(line.element.role, line.name, line.depth) for line in outline(APP, elements, **more)[0]]


def test_containers_that_say_nothing_are_left_out_and_do_not_count() -> None:
    assert names(FORM) == [
        ("frame", "Window", 0),
        ("push-button", "Send", 1),
        ("list-item", "item 1", 1),
        ("push-button", "", 1),
        ("push-button", "File", 2),
    ]
    assert len(names(FORM, compact=False)) == len(FORM)


def test_what_lies_too_deep_is_cut_and_said_so() -> None:
    lines, cut = outline(APP, FORM, max_depth=1)
    assert cut is True
    assert max(line.depth for line in lines) == 1


def test_names_that_steer_a_reader_are_written_out() -> None:
    assert shown_text("ls\u202e\x1b[2J", kept="") == "ls\\u202e\\u001b[2J"
    assert shown_text("x" * 600) == "x" * 499 + "…"
    assert shown_text("line\n\ttab 👩\u200d👧") == "line\n\ttab 👩\u200d👧"


@pytest.mark.parametrize(
    ("said", "role"),
    [("button", "push-button"), ("AXButton", "push-button"), ("push_button", "push-button"), ("TextBox", "entry")],
)
def test_roles_go_by_many_names(said: str, role: str) -> None:
    assert role in roles_called(said)


def test_a_selector_prefers_the_exact_name() -> None:
    lines, _cut = outline(
        APP, tree(("/w", None, "frame", "w"), ("/a", "/w", "link", "Send all"), ("/b", "/w", "link", "Send"))
    )
    assert [line.name for line in select(Selector(name_contains="send"), lines)] == ["Send", "Send all"]
    assert [line.name for line in select(Selector(name="SEND"), lines)] == ["Send"]
    assert select(Selector(states=["not-enabled"]), lines) == []


def test_the_other_contracts_names_are_understood() -> None:
    assert Selector.from_wire({"byRole": "AXButton", "titleContains": "x"}) == Selector(
        role="AXButton", name_contains="x"
    )
    with pytest.raises(ValueError, match="at least one"):
        Selector.from_wire({"limit": 3})


def test_a_label_is_the_name_of_its_field_and_no_line_of_its_own() -> None:
    form = tree(
        ("/w", None, "dialog", "Form"),
        ("/l", "/w", "label", "First name:"),
        ("/f", "/w", "text", ""),
        ("/o", "/w", "label", "Not a label of a field"),
    )
    form[2].label = "First name:"
    assert names(form) == [
        ("dialog", "Form", 0),
        ("text", "First name", 1),
        ("label", "Not a label of a field", 1),
    ]
    assert [line.name for line in select(Selector(role="text", name="first name"), outline(APP, form)[0])] == [
        "First name"
    ]


def test_cells_that_say_nothing_are_left_out() -> None:
    table = tree(
        ("/w", None, "table", "Files"),
        ("/c", "/w", "table-cell", ""),
        ("/i", "/c", "table-cell", ""),
        ("/n", "/c", "table-cell", "notes.txt"),
        ("/t", "/w", "table-cell", ""),
        ("/a", "/t", "table-cell", "11:54"),
        ("/b", "/t", "table-cell", "11:54"),
        ("/e", "/w", "table-cell", ""),
    )
    assert names(table) == [("table", "Files", 0), ("table-cell", "notes.txt", 1), ("table-cell", "11:54", 1)]


def test_no_action_is_offered_that_makes_no_sense() -> None:
    window, button, off, cell = tree(
        ("/w", None, "frame", "w"),
        ("/b", "/w", "push-button", "Go"),
        ("/d", "/w", "push-button", "Off"),
        ("/c", "/w", "table-cell", "one"),
    )
    for one in (window, button, off, cell):
        one.states, one.interfaces = (*ON, "focusable"), frozenset({"Action"})
    off.states = ("visible", "focusable")
    lines, _cut = outline(APP, [window, button, off, cell])
    assert [line.actions for line in lines] == [[], ["press"], [], []]


def test_role_text_is_a_text_field() -> None:
    assert "entry" in roles_called("text")
    assert not roles_called("text") & {"label", "static", "paragraph"}

"""References: the same element keeps one, another element never gets it."""

import pytest

from computer_linker.computer.facets.accessibility import Application, Element, ElementId
from computer_linker.errors import StaleReference
from computer_linker.model.geometry import Rect
from computer_linker.providers import refs
from computer_linker.providers.refs import Reference, References, difference, likeness

APP = Application(":1.1", "app", 1, "Qt", "6", ElementId(":1.1", "/root"))


def element(
    name: str = "Send", role: str = "push-button", path: str = "/b", at: tuple[int, int, int, int] = (0, 0, 9, 9)
) -> Element:
    x, y, width, height = at
    return Element(ElementId(":1.1", path), None, role, name, bounds=Rect(x=x, y=y, width=width, height=height))


def ref(references: References, one: Element, scope: str = "desk") -> str:
    return references.give(scope, APP, [one])[one.id]


def test_the_same_element_keeps_its_reference_when_it_moves() -> None:
    references = References()
    assert ref(references, element()) == ref(references, element(at=(50, 60, 9, 9)))


@pytest.mark.parametrize("other", [element(name="Delete"), element(role="link"), element(path="/c")])
def test_another_element_gets_another_reference(other: Element) -> None:
    references = References()
    assert ref(references, element()) != ref(references, other)


def test_a_name_that_comes_back_gets_its_own_reference_again_but_never_anothers() -> None:
    references = References()
    first, second = ref(references, element("Play")), ref(references, element("Pause"))
    assert first != second
    assert ref(references, element("Play")) == first


def test_references_differ_between_services_and_scopes() -> None:
    one, other = References(), References()
    assert ref(one, element()) != ref(one, element(), scope="b")
    with pytest.raises(StaleReference):
        other.find("desk", ref(one, element()))
    with pytest.raises(StaleReference):
        one.find("b", ref(one, element()))


def test_a_nameless_element_is_another_when_place_and_size_changed() -> None:
    seen = Reference("e1", "desk", element(""), "app", None, ())
    assert difference(seen, element("", at=(0, 0, 9, 20))) == ""
    assert difference(seen, element("", at=(5, 5, 9, 9))) == ""
    assert difference(seen, element("", at=(5, 5, 20, 20))) != ""


def test_a_window_stays_the_same_when_its_title_changes() -> None:
    references = References()
    assert ref(references, element("a.txt", "frame")) == ref(references, element("*a.txt", "frame"))


def test_old_references_are_forgotten_not_reused() -> None:
    references = References()
    first = ref(references, element())
    many = [element(str(number), path=f"/{number}") for number in range(refs.MAX_REFERENCES + 1)]
    references.give("desk", APP, many)
    with pytest.raises(StaleReference):
        references.find("desk", first)
    assert ref(references, element()) != first


def test_likeness_ranks_the_successor_first() -> None:
    seen = element("clicks: 1", "label")
    near = element("clicks: 2", "label")
    far = element("Quit", "menu-item", "/q", (400, 400, 9, 9))
    score = [likeness(seen, (), one, (), seen_window=None, now_window=None) for one in (seen, near, far)]
    assert score[0] > score[1] > 0.5 > score[2]

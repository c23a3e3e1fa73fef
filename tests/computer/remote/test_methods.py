"""Every facet method can be called from afar or is known not to be, and its values come back as they were."""

import inspect
from typing import Any

import pytest

from computer_linker.computer.facets import (
    accessibility,
    clipboard,
    facts,
    files,
    keyboard,
    notifications,
    pointer,
    screen,
    windows,
)
from computer_linker.computer.facets.accessibility import Application, Change, Element, ElementId, Tree, TreeLimits
from computer_linker.computer.facets.clipboard import Clip
from computer_linker.computer.facets.files import Copy, MakeFolder, Mark, Move, Remove, Restore, Write
from computer_linker.computer.facets.screen import Pixmap
from computer_linker.computer.remote.files import packed_change, unpacked_change
from computer_linker.computer.remote.methods import methods, methods_of
from computer_linker.errors import InvalidRequest
from computer_linker.model.effect import Effect
from computer_linker.model.geometry import Rect
from computer_linker.model.paths import PathRules, RootedPath
from computer_linker.transports.peer.frames import packed, unpacked

LOCAL_ONLY = {"protect", "open_file", "open_folder"}
"""What holds descriptors of this machine."""
FACETS = {
    "accessibility": accessibility.Accessibility, "apps": windows.Apps, "clipboard": clipboard.Clipboard, "facts": facts.Facts,
    "files": files.Files, "keyboard": keyboard.Keyboard, "notifications": notifications.Notifications,
    "pointer": pointer.Pointer, "screen": screen.Screen, "windows": windows.Windows,
}  # fmt: skip
AREA = Rect(x=1, y=2, width=3, height=4)
ID = ElementId("app", "/1/2")
ELEMENT = Element(
    ID, None, "button", "Send", ("enabled",), frozenset({"Action", "Text"}), bounds=AREA, value="v", index=3
)


def over_the_wire(value: Any) -> Any:
    return unpacked(packed({"t": "reply", "value": value}))["value"]


@pytest.mark.parametrize("facet", sorted(FACETS))
def test_every_method_has_its_row(facet: Any) -> None:
    own = {name for name, _ in inspect.getmembers(FACETS[facet], inspect.isfunction) if not name.startswith("_")}
    assert set(methods_of(facet)) == own - LOCAL_ONLY


def test_everything_from_afar_needs_a_capability_and_acts_say_what_is_known() -> None:
    for method in methods().values():
        assert method.needs or method.needs_any, method.name
        if method.effect is Effect.ACT:
            assert method.known is not None, method.name


@pytest.mark.parametrize(
    ("name", "result"),
    [
        ("controls.applications", [Application("app", "Mail", 7, "gtk", "3.24", ID, [ELEMENT], "mail")]),
        ("controls.tree", Tree(ID, [ELEMENT], ("nodes", "time"))),
        ("controls.element", ELEMENT),
        ("controls.focused", None),
        ("controls.caret", (1, 2)),
        ("controls.subscribe", Change("app", "/1", "window:activate", 1, 2.5, ID)),
        ("display.capture", Pixmap(2, 1, 8, bytes(8), AREA)),
        ("clip.snapshot", Clip({"text/plain": b"x", "image/png": bytes(100_000)})),
        ("clip.read", bytes(100_000)),
        ("clip.read", None),
    ],
)
def test_a_result_comes_back_as_it_was(name: str, result: Any) -> None:
    method = methods()[name]
    value, blobs = method.to_answer(result)
    assert method.from_answer(over_the_wire(value), blobs) == result


def test_arguments_come_over_as_they_were() -> None:
    method = methods()["controls.tree"]
    params = over_the_wire(method.to_params((ID, TreeLimits(max_nodes=5)), {}))
    assert method.from_params(params) == {"root": ID, "limits": TreeLimits(max_nodes=5)}


@pytest.mark.parametrize(
    "params", [{}, {"at": 5}, {"at": {"x": "1", "y": 2}}, {"at": {"x": 1, "y": 2}, "more": 1}, [], None]
)
def test_arguments_that_do_not_fit_are_refused(params: Any) -> None:
    with pytest.raises(InvalidRequest):
        methods()["input.click"].from_params(params)


@pytest.mark.parametrize("blob", [-1, 1, 99])
def test_an_answer_that_lacks_its_bytes_is_refused(blob: int) -> None:
    with pytest.raises(InvalidRequest):
        methods()["clip.read"].from_answer({"blob": blob}, [b"x"])


PATH = RootedPath("/root", ("a", "b"), PathRules(denied=("x",), read_only=(("y", "z"),)))


@pytest.mark.parametrize(
    "change",
    [
        Write(PATH, b"\x00\xff", must_be_new=True, expect=Mark(1, 2, 3, 4), is_executable=True), MakeFolder(PATH, parents=True),
        Remove(PATH, recursive=True), Move(PATH, PATH, overwrite=True), Copy(PATH, PATH), Restore(PATH, "kept"),
    ],
    ids=lambda change: type(change).__name__,
)  # fmt: skip
def test_a_change_comes_over_as_it_was(change: Any) -> None:
    assert unpacked_change(over_the_wire(packed_change(change))) == change


@pytest.mark.parametrize(
    "value",
    [
        None,
        {},
        {"do": "format", "fields": {}},
        {"do": "write", "fields": {"path": {}, "content": "text"}},
        {"do": "remove", "fields": {}},
    ],
)
def test_what_is_no_change_is_refused(value: Any) -> None:
    with pytest.raises(InvalidRequest):
        unpacked_change(value)

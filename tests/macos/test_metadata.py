"""Every name of Apple's frameworks that the macOS facets use exists there, with as many arguments and the same numbers.

This reads what pyobjc records of macOS. It does not show what a call does: no test has run on a Mac.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from computer_linker.computer.local.macos import input as mac_input
from macos.pyobjc import arity, names

FACETS = Path(mac_input.__file__).parent
IMPORTED = {
    "Quartz": "Quartz", "quartz": "Quartz", "AppKit": "AppKit", "ApplicationServices": "ApplicationServices",
    "Services": "ApplicationServices", "services": "ApplicationServices",
}  # fmt: skip
WITHOUT_RECORD = {
    "generalPasteboard", "types", "dataForType_", "clearContents", "sharedWorkspace", "frontmostApplication",
    "processIdentifier",
}  # fmt: skip
"""Methods of which pyobjc records nothing, because nothing of them is special: their spelling is unproven."""


def uses() -> Iterator[tuple[str, str, ast.AST]]:
    """Each module, the name that is used of it, and the call or attribute where."""
    for path in sorted(FACETS.glob("*.py")):
        tree = ast.parse(path.read_text())
        called = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in IMPORTED:
                yield IMPORTED[node.value.id], node.attr, called.get(id(node), node)


def test_every_name_is_one_of_the_framework() -> None:
    used = {(module, name) for module, name, _ in uses()}
    assert len(used) > 40
    assert sorted(f"{module}.{name}" for module, name in used if not names()[module].has(name)) == []


def test_every_function_is_called_with_as_many_arguments_as_it_has() -> None:
    wrong, seen = [], 0
    for module, name, node in uses():
        if not isinstance(node, ast.Call) or name not in names()[module].functions:
            continue
        seen += 1
        encoded, is_variadic = names()[module].functions[name]
        given, wanted = len(node.args), arity(encoded)
        if given < wanted if is_variadic else given != wanted:
            wrong.append(f"{name}: {given} of {wanted} in line {node.lineno}")
    assert seen > 30
    assert wrong == []


def test_every_method_is_one_that_is_recorded_or_named_as_unproven() -> None:
    recorded = {name for each in names().values() for _, name in each.selectors}
    found = set()
    for path in FACETS.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                is_objc = (
                    node.func.attr.endswith("_") and not node.func.attr.startswith("_")
                ) or node.func.attr in WITHOUT_RECORD
                found |= {node.func.attr} if is_objc else set()
    assert found >= {"setData_forType_", "activateWithOptions_"}
    assert found - recorded == WITHOUT_RECORD


def test_the_names_of_mouse_events_that_are_put_together_exist() -> None:
    kinds = [f"{side}Mouse{kind}" for side in ("Left", "Right", "Other") for kind in ("Down", "Up", "Dragged")]
    assert [kind for kind in ("MouseMoved", *kinds) if not names()["Quartz"].has(f"kCGEvent{kind}")] == []


def test_the_numbers_of_modifiers_and_buttons_are_apple_s() -> None:
    numbers = names()["Quartz"].numbers
    masks = {"ctrl": "Control", "alt": "Alternate", "shift": "Shift", "super": "Command"}
    assert {name: numbers[f"kCGEventFlagMask{mask}"] for name, mask in masks.items()} == mac_input._FLAGS
    sides = {"left": "Left", "right": "Right", "middle": "Center"}
    assert {
        side: numbers[f"kCGMouseButton{name}"] for side, name in sides.items()
    }.items() <= mac_input._NUMBERS.items()


@pytest.mark.parametrize("start", ["AX", "kCG"])
def test_every_text_that_stands_for_a_constant_is_that_constant(start: str) -> None:
    texts = {
        node.value
        for path in FACETS.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isalnum() and node.value.startswith(start)
    }  # fmt: skip
    assert len(texts) >= 5
    known = (
        set(names()["ApplicationServices"].texts.values())
        | names()["Quartz"].constants
        | set(names()["Quartz"].numbers)
    )
    assert sorted(texts - known - {"kCGEvent"}) == []

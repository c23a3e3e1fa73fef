"""Which scopes' commands go without UNIX sockets: those that could pass a folder to a sandbox that holds less of it."""

from pathlib import Path
from typing import Any

import pytest

from computer_linker.model.paths import PathRules
from computer_linker.model.scope import Scope
from computer_linker.policy.writers import could_meet_narrower
from computer_linker.providers.processes.confinement import kept_apart
from computer_linker.providers.sandbox.boundary import Confinement, Folder
from support.road import folder_scope


def scope(name: str, *roots: str, capabilities: list[str] | None = None, **policy: Any) -> Scope:
    value = {**folder_scope(Path("/"), name, **policy), "roots": list(roots)}
    return Scope.from_wire(value if capabilities is None else {**value, "capabilities": capabilities})


@pytest.mark.parametrize(
    ("other", "cut"),
    [
        (scope("other", "/o/inner"), True),
        (scope("other", "/o"), False),
        (scope("other", "/"), False),
        (scope("other", "/o-beside"), False),
        (scope("other", "/o", "/p"), False),
        (scope("other", "/p", "/o/inner/deep"), True),
        (scope("other", "/o", allowProtected=True), True),
        (scope("other", "/o/inner", sandbox="off"), False),
        (scope("other", "/o/inner", capabilities=["fs:read", "fs:write"]), False),
        (scope("other", "/o/inner", capabilities=["fs:read", "codex:run"]), True),
    ],
)
def test_the_scope_with_more_to_hold_is_the_one(other: Scope, cut: bool) -> None:
    mine = scope("mine", "/o")
    assert could_meet_narrower(mine, [mine, other]) is cut


def test_two_that_overlap_in_part_both_go_without() -> None:
    first, second = scope("first", "/a", "/b"), scope("second", "/b", "/c")
    assert could_meet_narrower(first, [first, second]) and could_meet_narrower(second, [first, second])


def test_who_may_not_write_passes_nothing_and_who_works_below_a_root_gets_nothing() -> None:
    mine, inner = scope("mine", "/o"), scope("inner", "/o/inner")
    root, below = Folder(0, "/o"), Folder(0, "/o/sub", PathRules(), above=("sub",))
    for confinement, cut in (
        (Confinement(writable=(root,)), True),
        (Confinement(readable=(root,)), False),
        (Confinement(), False),
        (Confinement(readable=(below,)), True),
    ):
        assert kept_apart(confinement, mine, [mine, inner]).cut_unix_sockets is cut
        assert kept_apart(confinement, mine, [mine]).cut_unix_sockets is (below in confinement.readable)

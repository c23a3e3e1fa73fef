"""Scopes whose folders meet: which asks the owner more, and what a new scope there takes over."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from computer_linker.config.defaults import EXECUTES, policy_of
from computer_linker.config.difference import STRICTER
from computer_linker.model.capability import Capability
from computer_linker.model.scope import Scope
from computer_linker.system import os

_CHANGES = frozenset({Capability.FS_WRITE, Capability.GIT_WRITE})
_SENTENCES = {
    ("confirm", "act"): "You are asked before clients act on the desktop",
    ("confirm", "all"): "You are asked before every change that clients make there",
    ("outcome", "view"): "What commands change there goes to a view first",
    ("outcome", "ask"): "You are asked what is kept of what commands change there",
}


@dataclass(frozen=True)
class Unasked:
    """A folder that clients change through one scope without a question, though another scope asks there."""

    folder: str
    scope: str
    asking: str
    field: str

    def __str__(self) -> str:
        by = "" if self.field == "confirm" else " by commands"
        return (
            f"Clients can change {self.folder}{by} through scope {self.scope} without asking you, "
            f"though scope {self.asking} asks."
        )


def take_over(scope: dict[str, Any], others: Iterable[dict[str, Any]]) -> list[str]:
    """Give a new scope the strictest `confirm` and `outcome` of those it shares a folder with; one sentence for each.

    A field that the scope's policy has already is the owner's choice and stays.
    """
    done: list[str] = []
    near = [other for other in others if _meet(scope["roots"], other.get("roots", []))]
    for name in ("confirm", "outcome"):
        ranks = STRICTER[name]
        values = [other.get("policy", {}).get(name) or ranks[0] for other in near]
        strictest = max((value for value in values if value in ranks), key=ranks.index, default=ranks[0])
        if strictest == ranks[0] or name in scope.get("policy", {}):
            continue
        scope["policy"] = {**policy_of(scope), name: strictest}
        source = " and ".join(other["id"] for other, value in zip(near, values, strict=True) if value == strictest)
        done.append(f"{_SENTENCES[name, strictest]}, as in {source}.")
    return done


def unasked(scopes: Iterable[Scope]) -> Iterator[Unasked]:
    """Every pair of scopes of which one asks and the other lets clients change the same folder without."""
    every = list(scopes)
    for asking in every:
        for other in every:
            if other.id != asking.id and (field := _asked_less(asking, other)) is not None:
                folder = next(_changed_through(other, asking), None)
                if folder is not None:
                    yield Unasked(folder, other.id, asking.id, field)


def real_roots(scope: Scope) -> list[str]:
    """The scope's folders, with links resolved."""
    return sorted(map(os.path.realpath, scope.roots))


def narrower_of(one: Scope, other: Scope) -> Scope | None:
    """The scope that has a folder inside a folder of the other; None when neither has."""
    for inner, outer in ((one, other), (other, one)):
        if any(_is_inside(a, b) and a != b for a in real_roots(inner) for b in real_roots(outer)):
            return inner
    return None


def _asked_less(asking: Scope, other: Scope) -> str | None:
    if asking.policy.confirm == "all" != other.policy.confirm and _CHANGES & other.granted:
        return "confirm"
    runs = Capability.FS_WRITE in other.granted and EXECUTES & other.granted
    is_direct = other.policy.outcome != "ask" and other.policy.confirm != "all"
    return "outcome" if asking.policy.outcome == "ask" and runs and is_direct else None


def _changed_through(other: Scope, asking: Scope) -> Iterator[str]:
    """The folders both have, without those that a narrower read-only scope keeps from being changed."""
    for a in real_roots(asking):
        for b in real_roots(other):
            if _is_inside(b, a):
                yield b
            elif _is_inside(a, b) and Capability.FS_WRITE in asking.granted:
                yield a


def _meet(roots: Iterable[str], others: Iterable[str]) -> bool:
    pairs = [(os.path.realpath(a), os.path.realpath(b)) for a in roots for b in others]
    return any(_is_inside(a, b) or _is_inside(b, a) for a, b in pairs)


def _is_inside(folder: str, other: str) -> bool:
    return PurePath(folder).is_relative_to(other)

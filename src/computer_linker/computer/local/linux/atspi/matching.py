"""Rules by which an application finds elements itself (the Collection interface)."""

from collections.abc import Iterable
from typing import Any

from computer_linker.computer.local.linux.atspi.names import ROLES, STATES

Rule = list[Any]
_ALL, _ANY = 1, 2
_WORDS_OF_ROLES = 4


def by_states(*states: str) -> Rule:
    """Elements that are in all of these states."""
    return _rule(states=_bits((STATES.index(state) for state in states), 2))


def by_roles(roles: Iterable[str]) -> Rule:
    """Elements that have one of these roles."""
    return _rule(roles=_bits((ROLES.index(role) for role in roles), _WORDS_OF_ROLES), role_match=_ANY)


def _rule(*, states: list[int] | None = None, roles: list[int] | None = None, role_match: int = _ALL) -> Rule:
    return [states or [0, 0], _ALL, {}, _ALL, roles or [0] * _WORDS_OF_ROLES, role_match, [], _ALL, False]


def _bits(numbers: Iterable[int], words: int) -> list[int]:
    """The numbers as bits of so many 32-bit words, which D-Bus carries as signed."""
    found = [0] * words
    for number in numbers:
        found[number // 32] |= 1 << number % 32
    return [word - (1 << 32) if word >= 1 << 31 else word for word in found]

"""Grants of a client, a paired computer or a hub: they are for the folders that the owner gave, not for a scope's id."""

from collections.abc import Iterable

from computer_linker.model.scope import Scope

Places = dict[str, list[str]]
"""Folders by the scope's id."""


def places_of(scopes: Iterable[Scope]) -> Places:
    """Where each of these scopes is: its folders, or that it is the computer."""
    return {scope.id: list(scope.roots) or [scope.type] for scope in scopes}


def granted_places(grants: Iterable[str], scopes: Iterable[Scope]) -> Places:
    """Where the scopes of these grants are."""
    named = {grant.partition(":")[0] for grant in grants}
    return places_of(scope for scope in scopes if scope.id in named)


def grants_that_hold(grants: Iterable[str], shown: Places, scopes: Iterable[Scope]) -> frozenset[str]:
    """The grants without those of scopes that are elsewhere by now: a new scope may have an old one's id.

    `shown` is where the scopes were when the owner gave them; one that still has a folder of then is the same, and so is one
    of which that was not kept.
    """
    if not shown:
        return frozenset(grants)
    now = places_of(scopes)
    gone = {scope for scope, places in shown.items() if scope in now and not {*places} & {*now[scope]}}
    return frozenset(grant for grant in grants if not gone or grant.partition(":")[0] not in gone)

"""Whether a command could pass a folder of its own to one whose sandbox closes less of it.

A closed name is held by a mount, in the sandbox that has the mount. A program that gets a folder of another sandbox by a socket
can rename there what its own sandbox does not hold. So either both sandboxes hold the same names, or they cannot meet.
"""

from collections.abc import Iterable

from computer_linker.config.defaults import EXECUTES
from computer_linker.model.scope import Scope
from computer_linker.policy.writers import is_below


def could_meet_narrower(scope: Scope, scopes: Iterable[Scope]) -> bool:
    """True when another scope runs programs in a folder of this one, and its sandboxes do not hold all that this one's do."""
    return any(
        _overlap(scope, other) and not _holds_as_much(other, scope)
        for other in scopes
        if other.id != scope.id and EXECUTES & other.granted and other.policy.sandbox != "off"
    )


def _overlap(scope: Scope, other: Scope) -> bool:
    return any(is_below(a, (b,)) or is_below(b, (a,)) for a in scope.roots for b in other.roots)


def _holds_as_much(other: Scope, scope: Scope) -> bool:
    if other.policy.allow_protected and not scope.policy.allow_protected:
        return False
    return all(is_below(root, other.roots) for root in scope.roots)

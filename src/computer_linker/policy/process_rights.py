"""The rights under which a process was started, compared with the config as it is later."""

from collections.abc import Iterable
from dataclasses import dataclass

from computer_linker.model.capability import Capability
from computer_linker.model.principal import Principal
from computer_linker.model.scope import Scope
from computer_linker.policy.engine import FolderAccess, folder_access, holds

_WIDTH: tuple[FolderAccess, ...] = ("hidden", "read-only", "writable")


@dataclass(frozen=True, slots=True)
class ProcessRights:
    """What a running process was allowed: to run at all, the folders, the network, and to do without a boundary."""

    principal: Principal
    scope_id: str
    any_of: frozenset[Capability]
    access: FolderAccess
    roots: frozenset[str]
    network: int
    """0 for none, 1 for the hosts of a list, which the gate compares with the config itself, 2 for all."""
    is_unconfined: bool

    @classmethod
    def of(cls, scope: Scope, principal: Principal, any_of: Iterable[Capability]) -> "ProcessRights":
        """The rights of this caller in the scope as it is now."""
        return cls(
            principal,
            scope.id,
            frozenset(right for right in any_of if holds(principal, scope, right)),
            folder_access(principal, scope),
            frozenset(scope.roots),
            scope.policy.network_width,
            scope.policy.sandbox == "off",
        )

    def remain_in(self, scope: Scope | None) -> bool:
        """False when the owner has taken one of them since, or removed the scope."""
        if scope is None:
            return False
        now = ProcessRights.of(scope, self.principal, self.any_of)
        return (
            bool(now.any_of)
            and _WIDTH.index(now.access) >= _WIDTH.index(self.access)
            and now.roots >= self.roots
            and now.network >= self.network
            and now.is_unconfined >= self.is_unconfined
        )

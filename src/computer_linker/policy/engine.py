"""Allow, ask or deny, with a reason. The order is specified: scope, operation, capability, scope type, then specifics."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal

from computer_linker.config.defaults import CODEX, EXECUTES
from computer_linker.config.schema import Config
from computer_linker.errors import InvalidRequest, PermissionDenied, UnknownScope
from computer_linker.model.capability import Capability
from computer_linker.model.effect import Effect
from computer_linker.model.event import Decision
from computer_linker.model.principal import Principal
from computer_linker.model.scope import SERVICE, Rights, Scope

FolderAccess = Literal["writable", "read-only", "hidden"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """A decision and its reason; `needs` and `missing` are capability names."""

    decision: Decision
    reason: str
    needs: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    is_closed: bool = False
    """The scope has no right at all while config.json is not valid: no right that the owner gives would help."""
    remedy: str | None = None
    """The owner's command that would allow it, where one would."""


def find_scope(config: Callable[[], Config], scope_id: str, principal: Principal) -> Scope:
    """Find the scope of exactly this id, if visible to this caller; an empty id is the service itself, for the owner alone."""
    if not scope_id and principal.is_owner:
        # Without reading the config: the owner must be able to repair an invalid one.
        return SERVICE
    scope = config().scope(scope_id)
    if scope is None or not sees_scope(principal, scope_id):
        seen = [known.id for known in config().scopes if sees_scope(principal, known.id)]
        raise UnknownScope(
            f"There is no scope {scope_id[:80]!r}. get_computer_info lists the scopes you can use.",
            **({"scopes": seen[:20]} if seen else {}),
        )
    return scope


_CLOSED = (
    "Scope {} is closed until the owner of this computer has corrected its config file, which is not valid now. "
    "Try again later, or ask the owner to run: computer-linker doctor"
)

_CORRECTED = "computer-linker doctor names the line; computer-linker doctor --fix repairs what it can"


def judge(scope: Scope, rights: Rights, principal: Principal) -> Verdict:
    """Whether this operation may run in this scope for this caller, before its request is even parsed."""
    if principal.grants is not None or principal.proof == "bridge":
        return _judged(scope, rights, principal)
    verdict: Verdict | None = scope.decided.get(rights.name)
    if verdict is None:
        verdict = scope.decided[rights.name] = _judged(scope, rights, principal)
    return verdict


def _judged(scope: Scope, rights: Rights, principal: Principal) -> Verdict:
    needs = [capability.value for capability in sorted(rights.needs | rights.needs_any)]
    missing = missing_capabilities(scope, rights, principal)
    if missing:
        reason = f"Scope {scope.id} does not allow {', '.join(missing)}."
        reason = _CLOSED.format(scope.id) if scope.is_closed else reason
        # A caller whose own grant is narrower would not gain from a wider scope, nor one that needs another type of scope.
        helps = not scope.is_closed and principal.grants is None and scope.serves(rights.on)
        return Verdict("deny", reason, needs, missing, scope.is_closed, granting(scope.id, missing) if helps else None)
    if not scope.serves(rights.on):
        return Verdict("deny", f"{rights.name} needs a {rights.on} scope; {scope.id} is a {scope.type} scope.", needs)
    if needs_confirmation(scope, rights.effect) or (rights.asked_by is not None and rights.asked_by(scope.policy)):
        return Verdict("ask", f"Scope {scope.id} asks a person before {rights.name}.", needs)
    if principal.proof == "bridge" and rights.effect is Effect.ACT:
        # The bridge's own rule for every scope: no act without a confirmation.
        return Verdict("ask", f"The desktop bridge asks a person before {rights.name}.", needs)
    return Verdict("allow", f"Scope {scope.id} allows it.", needs)


def refuse(verdict: Verdict, rights: Rights) -> None:
    """Raise what a `deny` verdict means on the wire."""
    if verdict.decision != "deny":
        return
    if verdict.is_closed:
        raise PermissionDenied(verdict.reason, needs=verdict.needs, rule="config", hint=_CORRECTED)
    if verdict.missing:
        raise PermissionDenied(
            verdict.reason,
            needs=verdict.needs,
            missing=verdict.missing,
            **({"ownerCanAllow": verdict.remedy} if verdict.remedy else {}),
        )
    raise InvalidRequest(verdict.reason, scopeType=rights.on)


def granting(scope: str, missing: list[str]) -> str:
    """The owner's command that gives a scope these capabilities."""
    # What runs programs needs a list of commands too, which set-up gives.
    if EXECUTES & set(missing):
        return f"computer-linker setup FOLDER {'--codex' if set(CODEX) & set(missing) else '--shell'}"
    return f"computer-linker scope edit {scope} --allow {' --allow '.join(missing)}"


def missing_capabilities(scope: Scope, rights: Rights, principal: Principal) -> list[str]:
    """What the scope, or this caller's grant, lacks."""
    granted = scope.granted
    missing = {capability for capability in rights.needs if capability not in granted}
    missing |= {c for c in rights.needs if not _has_capability(principal, scope.id, c)}
    if rights.needs_any and not any(c in granted and _has_capability(principal, scope.id, c) for c in rights.needs_any):
        missing |= rights.needs_any
    return sorted(capability.value for capability in missing)


def needs_confirmation(scope: Scope, effect: Effect) -> bool:
    """Return True when the scope requires confirmation for this kind of effect."""
    match scope.policy.confirm:
        case "never":
            return False
        case "act":
            return effect is Effect.ACT
        case "all":
            return effect is not Effect.OBSERVE


def may_ask(scope: Scope) -> bool:
    """Return True when some operation in this scope needs a person's yes."""
    return scope.policy.confirm != "never" or scope.policy.outcome == "ask"


def sees_scope(principal: Principal, scope_id: str) -> bool:
    """Return True when this caller may learn that the scope exists."""
    grants = principal.grants
    return grants is None or any(grant == scope_id or grant.startswith(scope_id + ":") for grant in grants)


def holds(principal: Principal, scope: Scope, capability: Capability) -> bool:
    """Return True when both the scope and this caller's grant have the capability."""
    return capability in scope.granted and _has_capability(principal, scope.id, capability)


def folder_access(principal: Principal, scope: Scope) -> FolderAccess:
    """What a program that runs for this caller may do with the scope's folders.

    Without `fs:read` it sees none of them: no kernel boundary can make a folder writable and unreadable.
    """
    if not holds(principal, scope, Capability.FS_READ):
        return "hidden"
    return "writable" if holds(principal, scope, Capability.FS_WRITE) else "read-only"


def _has_capability(principal: Principal, scope_id: str, capability: str) -> bool:
    grants = principal.grants
    return grants is None or scope_id in grants or f"{scope_id}:{capability}" in grants


# The rights under which a process was started, compared with the config as it is later.

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

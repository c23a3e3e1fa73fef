"""The capability table: which operation needs what, does what, and is held by which boundary."""

from collections.abc import Iterable

from computer_linker.model.capability import IMPLIED, Capability
from computer_linker.registry.operation import Operation

HEADERS = ("operation", "needs", "effect", "scope", "boundary")
BOUNDARIES = {
    "path-enforced": "every path is opened by the kernel beneath the scope's root",
    "sandboxed": "the program runs inside the kernel boundary that the result names",
    "scoped-metadata": "facts about the scope or the service only",
    "desktop": "the person's screen, windows or input devices",
    "mixed": "as the operations it contains",
}


def rows(operations: Iterable[Operation]) -> list[tuple[str, str, str, str, str]]:
    """One row an operation, as plain text."""
    return [(op.name, needs_text(op), op.effect.value, op.on, op.boundary) for op in operations]


def needs_text(op: Operation) -> str:
    """The capabilities an operation asks for."""
    every = " and ".join(sorted(op.needs))
    some = " or ".join(sorted(op.needs_any))
    if every and some:
        return f"{every}, and {some}"
    return every or some or "nothing"


def allowed_by(operations: Iterable[Operation]) -> dict[str, list[str]]:
    """Each capability with the operations that ask for it."""
    listed: dict[str, list[str]] = {capability.value: [] for capability in Capability}
    for op in operations:
        for capability in sorted(op.needs | op.needs_any):
            listed[capability.value].append(op.name)
    return listed


def implied_by(capability: str) -> list[str]:
    """What a capability brings along."""
    return sorted(IMPLIED.get(Capability(capability), frozenset()))

"""What differs between two configs, one line for each field, and whether the later one gives clients more."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, get_args

from computer_linker.config.defaults import EXECUTES
from computer_linker.config.schema import Config
from computer_linker.model.scope import ConfirmMode, OutcomeMode, SandboxMode

STRICTER: dict[str, tuple[str, ...]] = {
    "confirm": get_args(ConfirmMode),
    "outcome": get_args(OutcomeMode),
    "sandbox": get_args(SandboxMode)[::-1],
}
"""The choices of a policy field, the widest first."""
TAKES_AWAY = frozenset({"deniedCommands", "deniedPaths", "excludedApplications"})
_OF_COMMANDS = frozenset({"allowedCommands", "deniedCommands"})
_GIVES_NOTHING = frozenset({"machineId", "machineName", "schemaVersion", "port", "name"})
_ALL_WITHOUT = frozenset({"allowedCommands", "maxProcesses", "maxMemoryMb"})
"""Fields that limit nothing, or by a default, when they have no value."""


@dataclass(frozen=True)
class Change:
    """One field that differs: a line for a person, and whether clients could do more than before."""

    line: str
    widens: bool


def changes(before: dict[str, Any], after: dict[str, Any]) -> list[Change]:
    """Every field in which two valid documents differ. The token and the tunnel are left out."""
    old, new = (Config.from_wire(document).to_wire() for document in (before, after))
    scopes_before, scopes_after = ({scope["id"]: scope for scope in made.pop("scopes", [])} for made in (old, new))
    found = [*_fields("config", _flat(old), _flat(new))]
    for name in dict.fromkeys([*scopes_before, *scopes_after]):
        if name not in scopes_after:
            # A narrower scope also limits what wider ones reach inside its folders.
            others = [root for scope in scopes_after.values() for root in scope.get("roots", [])]
            inside = any(_is_inside(root, other) for root in scopes_before[name].get("roots", []) for other in others)
            found.append(Change(f"{name}: scope removed", inside))
        elif name not in scopes_before:
            scope = scopes_after[name]
            rights = ", ".join(scope.get("capabilities", [])) or "nothing"
            found.append(Change(f"{name}: scope added, {' '.join(scope.get('roots', []))} may {rights}", True))
        else:
            found += _fields(name, _flat(scopes_before[name]), _flat(scopes_after[name]))
    return found


def _flat(value: dict[str, Any]) -> dict[str, Any]:
    """The fields with those of a scope's policy beside them."""
    own = {name: one for name, one in value.items() if name not in ("policy", "ownerToken", "tunnel")}
    bridge = {f"bridge.{name}": one for name, one in own.pop("bridge", {}).items()}
    return {**own, **bridge, **value.get("policy", {})}


def _is_inside(root: str, other: str) -> bool:
    return PurePath(root).is_relative_to(other) or PurePath(other).is_relative_to(root)


def _fields(where: str, before: dict[str, Any], after: dict[str, Any]) -> Iterator[Change]:
    for name in dict.fromkeys([*before, *after]):
        old, new = before.get(name), after.get(name)
        if old != new:
            # Rules about commands give nothing to a scope that runs none.
            is_idle = name in _OF_COMMANDS and not EXECUTES & set(after.get("capabilities", []))
            yield Change(f"{where}: {name} {_difference(old, new)}", not is_idle and widens(name, old, new))


def _difference(old: Any, new: Any) -> str:
    if not isinstance(old, list) or not isinstance(new, list):
        return f"{_shown(old)} -> {_shown(new)}"
    added, removed = [one for one in new if one not in old], [one for one in old if one not in new]
    parts = [f"{verb} {_shown(some)}" for verb, some in (("added", added), ("removed", removed)) if some]
    return "; ".join(parts) or "in another order"


def _shown(value: Any) -> str:
    match value:
        case None:
            return "not set"
        case str():
            return value if value.isprintable() else json.dumps(value)
        case list():
            return ", ".join(map(_shown, value)) or "none"
        case {"pattern": pattern}:
            return _shown(pattern)
        case _:
            return json.dumps(value)


def widens(name: str, old: Any, new: Any) -> bool:
    """Whether clients could do more with the new value; anything that is not known to be as narrow counts as wider."""
    if name in _GIVES_NOTHING:
        return False
    if name in STRICTER:
        return STRICTER[name].index(new) < STRICTER[name].index(old)
    if name in _ALL_WITHOUT and (old is None or new is None):
        return name != "allowedCommands" or new is None
    if isinstance(old, bool) or isinstance(new, bool):
        return new is not False and old is not True
    if isinstance(old, list) and isinstance(new, list):
        wide, narrow = (old, new) if name in TAKES_AWAY else (new, old)
        return any(one not in narrow for one in wide)
    if isinstance(old, int) and isinstance(new, int):
        return new > old
    return new is not None

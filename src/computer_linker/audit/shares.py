"""Shares: how much of the reserve each principal may fill, acts apart from reads, so that none pushes out another."""

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

from computer_linker.audit.flood import REFUSED

_ASKED = ("approvals.", "confirm.")
_OWNER = "cli:"


class Share(NamedTuple):
    """Whose records, and of which kind: changes, refusals, consents and the owner's are acts, the others reads."""

    principal: str
    kind: Literal["acts", "reads"]


class Sorter:
    """Finds the share of each record, in the order of the journal: an outcome belongs to its intent."""

    def __init__(self) -> None:
        self._intents: dict[str, Share] = {}

    def share(self, fields: dict[str, Any]) -> Share | None:
        """The share of a record; None for one that is of no use by itself."""
        match fields["kind"]:
            case "intent":
                share = self._intents[fields["operationId"]] = Share(fields["principal"], "acts")
                return share
            case "outcome":
                return self._intents.pop(fields["operationId"], None)
            case "record":
                return Share(fields["principal"], "acts" if _is_act(fields) else "reads")
            case "left_out" | "lost":
                return Share(fields.get("principal", ""), "acts")
            case _:
                return None


def _is_act(fields: dict[str, Any]) -> bool:
    return (
        fields.get("effect") is not None
        or fields.get("decision") != "allow"
        or fields.get("errorCode") in REFUSED
        or fields["principal"].startswith(_OWNER)
        or fields["op"].startswith(_ASKED)
    )


def excess(usage: dict[Share, int], room: int) -> dict[Share, int]:
    """How many bytes each share has to give up so that acts and reads fit half the room each.

    Those with the most give: a share below the common level loses nothing, however much another holds.
    """
    over: dict[Share, int] = {}
    for kind in ("acts", "reads"):
        used = {share: size for share, size in usage.items() if share.kind == kind}
        level = _level(used.values(), room // 2)
        over |= {share: size - level for share, size in used.items() if size > level}
    return over


def _level(sizes: Iterable[int], room: int) -> int:
    """The most that each may hold so that all fit: small ones whole, the rest alike."""
    ordered = sorted(sizes)
    for index, size in enumerate(ordered):
        alike = room // (len(ordered) - index)
        if size > alike:
            return alike
        room -= size
    return ordered[-1] if ordered else 0

"""Texts of answers that were longer than a client shows, kept for a while so that result.read can go on."""

import time
from dataclasses import dataclass
from typing import Self

from computer_linker.errors import NotFound
from computer_linker.model.principal import account_of, is_of
from computer_linker.services import Services

_KEPT_S = 900.0
_MAX_BYTES = 32_000_000
_MAX_OF_ONE = 8_000_000


@dataclass(frozen=True, slots=True)
class Kept:
    """One text, whose it is, the scope and operation it came from, and when it is dropped."""

    principal: str
    scope: str
    op: str
    text: bytes
    until: float


class KeptResults:
    """The newest long answers of each principal, in memory: at most 32 MB, for a quarter of an hour."""

    def __init__(self) -> None:
        self._kept: dict[str, Kept] = {}

    @classmethod
    def open(cls, services: Services) -> Self:
        return cls()

    def keep(self, operation_id: str, principal: str, scope: str, op: str, text: bytes) -> None:
        """Keep a text, dropping the oldest ones where there is no room."""
        self._drop_old()
        text = text[:_MAX_OF_ONE]
        mine = [name for name, kept in self._kept.items() if account_of(kept.principal) == account_of(principal)]
        while mine and sum(len(self._kept[name].text) for name in mine) + len(text) > _MAX_OF_ONE:
            del self._kept[mine.pop(0)]
        while self._kept and sum(len(kept.text) for kept in self._kept.values()) + len(text) > _MAX_BYTES:
            del self._kept[next(iter(self._kept))]
        self._kept[operation_id] = Kept(principal, scope, op, text, time.monotonic() + _KEPT_S)

    def find(self, operation_id: str, principal: str, scope: str) -> Kept:
        """The text. Raises NotFound for one that is gone, another principal's or another scope's."""
        self._drop_old()
        kept = self._kept.get(operation_id)
        if kept is None or kept.principal != principal or kept.scope not in ("", scope):
            raise NotFound("This result is no longer kept. Run the operation again, asking for less.")
        return kept

    async def end_of(self, principal: str | None) -> int:
        """Forget the texts of a principal whose access was revoked, or of all. Nothing runs, so nothing is counted."""
        for name in [name for name, kept in self._kept.items() if is_of(kept.principal, principal)]:
            del self._kept[name]
        return 0

    def _drop_old(self) -> None:
        now = time.monotonic()
        for name in [name for name, kept in self._kept.items() if kept.until < now]:
            del self._kept[name]

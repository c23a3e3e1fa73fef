"""Wrong confirmation tokens: how many a conversation may try, and what more of them cost it."""

from collections import OrderedDict

from computer_linker.errors import ConfirmRequired

Bound = tuple[str, str, str]

_MOST_WRONG = 10
_PAUSE_S = 60.0
_MOST_PAUSED = 256
_PAUSED_OF_ONE = 5


class Guesses:
    """Counts by what a yes is bound to, so that one client's guesses take nothing from another's.

    A token is good only in the conversation it was issued to. Only conversations that have one are counted, which bounds the
    counters by what the ledger holds; one that guessed too often gets no new token for a minute. A caller who opens
    conversation after conversation for that soon gets none in a new one.
    """

    def __init__(self) -> None:
        self._wrong: dict[Bound, int] = {}
        self._paused: OrderedDict[Bound, float] = OrderedDict()

    def is_one_too_many(self, bound: Bound, now: float, *, has_tokens: bool) -> bool:
        """Count a wrong token; True when it is the one that costs everything."""
        if not has_tokens:
            return False
        self._wrong[bound] = self._wrong.get(bound, 0) + 1
        if self._wrong[bound] < _MOST_WRONG:
            return False
        del self._wrong[bound]
        self._paused[bound] = now + _PAUSE_S
        self._paused.move_to_end(bound)
        if len(self._paused) > _MOST_PAUSED:
            self._paused.popitem(last=False)
        return True

    def right(self, bound: Bound) -> None:
        """A right token, or no token any more: what was counted is over."""
        self._wrong.pop(bound, None)

    def refuse_struck(self, bound: Bound, now: float) -> None:
        """Raise for a conversation that guessed too often just now, and for a new one of a caller who has many such."""
        while self._paused and next(iter(self._paused.values())) <= now:
            self._paused.popitem(last=False)
        of_caller = sum(1 for other in self._paused if other[0] == bound[0])
        is_known = bound in self._wrong
        if bound in self._paused or (of_caller >= _PAUSED_OF_ONE and not is_known):
            raise ConfirmRequired(
                "Too many wrong confirmation tokens. Wait a minute before asking for a new one.",
                retryAfterSeconds=_PAUSE_S,
            )

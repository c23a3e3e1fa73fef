"""Events that have no row of their own, because the row of another event shows them."""

from collections.abc import Sequence

from computer_linker.model.history import HistoryEvent


def is_part(event: HistoryEvent) -> bool:
    """Whether another row already shows it: the change of files that an owner's `undo` made."""
    return event["op"] == "file.undo" and event["parent"] is not None and (event["principal"] or "").startswith("cli:")


def without_parts(events: Sequence[HistoryEvent]) -> list[HistoryEvent]:
    """The events but those that the row of another of them shows."""
    known = {event["operationId"] for event in events}
    return [event for event in events if not (is_part(event) and event["parent"] in known)]

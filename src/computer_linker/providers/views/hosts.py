"""The hosts that the programs of a view connected to, by the history."""

from computer_linker.audit.history import History, every_event
from computer_linker.audit.query import Filter
from computer_linker.providers.views.store import View

_CONNECTION = "network.connect"


def hosts_of(history: History, view: View) -> list[str]:
    """The hosts with their ports of the connections that went through; only a network list has its connections recorded."""
    history.index.catch_up()
    found = Filter()
    found.add("scope = ? AND op = ? AND at >= ?", view.scope_id, _CONNECTION, view.created_at)
    mine = (event for event in every_event(history, found) if event["parent"] in view.operations)
    summaries = (event["summary"] for event in mine)
    passed = (each for each in summaries if each.get("verdict") == "allowed")
    return sorted({f"{each['host']}:{each['port']}" if each.get("port") else str(each["host"]) for each in passed})

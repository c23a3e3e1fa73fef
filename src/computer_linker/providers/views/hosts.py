"""The hosts that the programs of a view connected to, by the history."""

from dataclasses import dataclass

from computer_linker.audit.history import History, every_event
from computer_linker.audit.query import Filter
from computer_linker.providers.views.store import View

_CONNECTION = "network.connect"


@dataclass(frozen=True, slots=True)
class Reached:
    """Hosts with their ports; known where the scope's network is a list of hosts."""

    hosts: list[str]
    refused: list[str]
    """Those that its programs tried and may not reach."""


def reached_by(history: History, view: View) -> Reached:
    """Read the connections of the operations that ran in the view."""
    if view.network in ("closed", "open"):
        # Nothing decided by name, so nothing was recorded.
        return Reached([], [])
    history.index.catch_up()
    found = Filter()
    found.add("scope = ? AND op = ? AND at >= ?", view.scope_id, _CONNECTION, view.created_at)
    mine = [event["summary"] for event in every_event(history, found) if event["parent"] in view.operations]
    passed = {_host(each) for each in mine if each.get("verdict") == "allowed"}
    refused = {_host(each) for each in mine if each.get("verdict") == "refused"} - passed
    return Reached(sorted(passed), sorted(refused))


def _host(summary: dict[str, object]) -> str:
    return f"{summary['host']}:{summary['port']}" if summary.get("port") else str(summary["host"])

"""status: ready or not, why, what listens, and what to do next."""

from typing import Annotated

import typer

from computer_linker.cli.output import print_json, say, table
from computer_linker.cli.owner import ask
from computer_linker.model.times import local
from computer_linker.owner.status import status as status_operation
from computer_linker.service.listeners import Listener
from computer_linker.service.reports import ServiceState, StatusReport, StatusTunnel

_NEXT = 3


def register(app: typer.Typer) -> None:
    """Add `status`."""

    @app.command()
    def status(
        details: Annotated[bool, typer.Option("--details", help="Show every row.")] = False,
        as_json: Annotated[bool, typer.Option("--json", help="Answer as JSON.")] = False,
    ) -> None:
        """Show whether clients can use this computer, and what listens."""
        answer = ask(status_operation, None, StatusReport)
        if as_json:
            print_json(answer.to_wire())
        else:
            show(answer, details=details)
        raise typer.Exit(0 if answer.status.ready else 1)


def show(answer: StatusReport, *, details: bool) -> None:
    """The short view; `details` adds every scope, warning and action."""
    state, service = answer.status, answer.service
    rows = [
        ("status", "ready" if state.ready else "not ready"),
        ("service", _service_text(service)),
        *_tunnel_rows(answer.tunnel, details=details),
        ("token", f"owner token {state.owner_token}"),
        ("scopes", ", ".join(scope.id for scope in answer.scopes) or "none"),
    ]
    if answer.waiting:
        rows.append(("waiting", f"{answer.waiting} for your answer: computer-linker approvals"))
    rows += [("why not", reason) for reason in state.blocking_reasons]
    # Next actions need the findings they refer to.
    if not details:
        rows += [("warning", sentence) for sentence in state.warnings[:_NEXT]]
        if more := len(state.warnings[_NEXT:]):
            rows.append(("warning", f"{more} more: computer-linker doctor"))
    table(rows)
    if answer.listeners:
        say()
        show_listeners(answer.listeners, details=details)
    if details:
        _details(answer)
    actions = state.next_actions if details else state.next_actions[:_NEXT]
    if not service.running:
        actions = [*actions, "Run: computer-linker start"]
    for action in actions:
        say(f"next: {action}")


def show_listeners(listening: list[Listener], *, details: bool = True) -> None:
    """One row for each; in short form only what programs of other users or machines can reach."""
    rows = [
        (one.kind, one.address, one.who, local(one.since) if one.since else "", one.close)
        for one in listening
        if details or one.reach != "user"
    ]
    if rows:
        table(rows, ("listens", "address", "who gets an answer", "since", "close it with"))
    else:
        say("Nothing listens but your own private sockets.")


def _tunnel_rows(tunnel: StatusTunnel, *, details: bool) -> list[tuple[str, str]]:
    """Rows for the tunnel if there is or should be one, with its error."""
    if tunnel.state == "stopped" and tunnel.requested is None and not details:
        return []
    if tunnel.provider is None:
        return [("tunnel", f"{tunnel.requested}, not opened yet" if tunnel.requested else "none")]
    where = tunnel.public_url or tunnel.tunnel_id
    rows = [("tunnel", f"{tunnel.provider} {tunnel.state}" + (f" at {where}" if where else ""))]
    if tunnel.state != "stopped" and tunnel.last_error:
        rows.append(("tunnel error", tunnel.last_error))
    if details and tunnel.since:
        rows.append(("tunnel since", f"{local(tunnel.since)}, {tunnel.restarts} restarts"))
    return rows


def _service_text(service: ServiceState) -> str:
    if not service.running:
        return "not running"
    return service.local_url or "running for local clients (no HTTP)"


def _details(answer: StatusReport) -> None:
    say()
    table([("state folder", answer.home), ("machine", f"{answer.machine_name} ({answer.machine_id})")])
    if answer.scopes:
        say()
        rows = [(s.id, s.type, " ".join(s.roots), " ".join(s.capabilities)) for s in answer.scopes]
        table(rows, ("scope", "type", "roots", "capabilities"))
    if answer.status.warnings:
        say()
        table([("warning", sentence) for sentence in answer.status.warnings])

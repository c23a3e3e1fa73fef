"""status: ready or not, why, and what to do next."""

from typing import Annotated, Any

import typer

from computer_linker.cli.output import print_json, say, table
from computer_linker.cli.places import current_config, running_service, state_home
from computer_linker.config.schema import Config

_NEXT = 3


def register(app: typer.Typer) -> None:
    """Add `status`."""

    @app.command()
    def status(
        details: Annotated[bool, typer.Option("--details", help="Show every row.")] = False,
        as_json: Annotated[bool, typer.Option("--json", help="Answer as JSON.")] = False,
    ) -> None:
        """Show whether clients can use this computer, and what to do next."""
        home = state_home()
        config = current_config(home)
        answer = report(config)
        if as_json:
            print_json(answer)
        else:
            show(answer, details=details)
        raise typer.Exit(0 if answer["status"]["ready"] else 1)


def report(config: Config) -> dict[str, Any]:
    """Return the object of `status --json`."""
    from computer_linker.service.doctor import readiness
    from computer_linker.tunnels.record import read, shown

    home = state_home()
    service = running_service(home)
    url = (service or {}).get("localUrl")
    return {
        "machineId": config.machine_id,
        "machineName": config.machine_name,
        "home": str(home),
        "service": {"running": service is not None, "localUrl": url, "publicUrl": config.public_base_url},
        "tunnel": shown(read(home)) | {"wished": config.tunnel.provider},
        "configuredUrl": f"http://{config.host}:{config.port}/mcp",
        "scopes": [
            {"id": s.id, "type": s.type, "roots": s.roots, "capabilities": s.capabilities} for s in config.scopes
        ],
        # The address is checked as if it were served, as `start` would do.
        "status": readiness(config, home, serving_http=True),
    }


def show(answer: dict[str, Any], *, details: bool) -> None:
    """The short view; `details` adds every scope, warning and action."""
    state, service = answer["status"], answer["service"]
    rows = [
        ("status", "ready" if state["ready"] else "not ready"),
        ("service", _service_text(service)),
        *_tunnel_rows(answer["tunnel"], details=details),
        ("token", f"owner token {state['ownerToken']}"),
        ("scopes", ", ".join(scope["id"] for scope in answer["scopes"]) or "none"),
    ]
    rows += [("why not", reason) for reason in state["blockingReasons"]]
    # Next actions need the findings they refer to.
    rows += [] if details else [("warning", sentence) for sentence in state["warnings"][:_NEXT]]
    table(rows)
    if details:
        _details(answer)
    actions = state["nextActions"] if details else state["nextActions"][:_NEXT]
    if not service["running"]:
        actions = [*actions, "Run: computer-linker start"]
    for action in actions:
        say(f"next: {action}")


def _tunnel_rows(tunnel: dict[str, Any], *, details: bool) -> list[tuple[str, str]]:
    """Rows for the tunnel if there is or should be one, with its error."""
    if tunnel["state"] == "stopped" and tunnel["wished"] is None and not details:
        return []
    if tunnel["provider"] is None:
        return [("tunnel", f"{tunnel['wished']}, not opened yet" if tunnel["wished"] else "none")]
    where = tunnel["publicUrl"] or tunnel.get("tunnelId")
    rows = [("tunnel", f"{tunnel['provider']} {tunnel['state']}" + (f" at {where}" if where else ""))]
    if tunnel["state"] != "stopped" and tunnel.get("lastError"):
        rows.append(("tunnel says", tunnel["lastError"]))
    if details and tunnel.get("since"):
        rows.append(("tunnel since", f"{tunnel['since']}, {tunnel['restarts']} restarts"))
    return rows


def _service_text(service: dict[str, Any]) -> str:
    if not service["running"]:
        return "not running"
    return service["localUrl"] or "running for local clients (no HTTP)"


def _details(answer: dict[str, Any]) -> None:
    say()
    table([("state folder", answer["home"]), ("machine", f"{answer['machineName']} ({answer['machineId']})")])
    if answer["scopes"]:
        say()
        rows = [(s["id"], s["type"], " ".join(s["roots"]), " ".join(s["capabilities"])) for s in answer["scopes"]]
        table(rows, ("scope", "type", "roots", "capabilities"))
    if answer["status"]["warnings"]:
        say()
        table([("warning", sentence) for sentence in answer["status"]["warnings"]])

"""hub: one endpoint for all machines of a fleet; invite them, trust them, see them and their history."""

from pathlib import Path
from typing import Annotated, Any

import typer

from computer_linker.cli.ask import refused
from computer_linker.cli.join import Authority, Credentials, absolute
from computer_linker.cli.output import CliError, note, print_json, say, table
from computer_linker.cli.peer import AsJson
from computer_linker.cli.places import control, running_service, state_home
from computer_linker.cli.start import Host, Port


def register(app: typer.Typer) -> None:
    """Add `hub`."""
    hub = typer.Typer(invoke_without_command=True)
    app.add_typer(hub, name="hub")
    hub.callback(invoke_without_command=True)(_hub)
    hub.command("stop")(_stop)
    hub.command("machines")(_machines)
    hub.command("invite")(_invite)
    hub.command("trust")(_trust)
    hub.command("forget")(_forget)
    hub.command("history")(_history)


def _hub(
    context: typer.Context,
    server: Annotated[str | None, typer.Option(metavar="URL", help="tls://HOST:PORT of the NATS server.")] = None,
    creds: Credentials = None,
    ca: Authority = None,
    embedded: Annotated[
        bool, typer.Option("--embedded", help="A server of its own on this machine, to try it.")
    ] = False,
    detach: Annotated[bool, typer.Option("--detach", help="Leave it to the service in the background.")] = False,
    host: Host = None,
    port: Port = None,
    as_json: AsJson = False,
) -> None:
    """Be the hub of a fleet: one MCP endpoint, over HTTP and stdio, for all machines that joined through a NATS server."""
    if context.invoked_subcommand is not None:
        return
    wanted = {"url": server, "creds": absolute(creds), "ca": absolute(ca), "embedded": embedded}
    service = running_service(state_home())
    if detach or (service is not None and service.get("localUrl") is not None):
        _show(control("hub.start", **wanted), as_json=as_json)
        return
    from computer_linker.cli.serve import announced, serving
    from computer_linker.service.fleet import store_hub
    from computer_linker.service.run import Reach

    _show(store_hub(state_home(), wanted), as_json=as_json)
    told = "serving %s for all machines: scope MACHINE/SCOPE"
    serving(state_home(), Reach(host, port, lambda at: note(told % at), announce=announced))


def _show(answer: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(answer)
        return
    say(f"The hub's key: {answer['key']}")
    note(f"server: {answer['url']}")


def _stop(as_json: AsJson = False) -> None:
    """Be a hub no more. Its machines are remembered."""
    answer = control("hub.stop")
    print_json(answer) if as_json else say("This computer is no longer a hub.")


def _machines(as_json: AsJson = False) -> None:
    """The machines of the fleet, and which are there now."""
    answer = control("hub.status")
    if as_json:
        print_json(answer)
    elif not answer["machines"]:
        note("No machine has joined. computer-linker hub invite NAME makes an invitation.")
    else:
        rows = [_row(machine) for machine in answer["machines"]]
        table(rows, ("name", "state", "system", "scopes", "id"))
        for machine in answer["machines"]:
            if machine["state"] == "pending":
                note(
                    f"{machine['name']} waits. If its owner shows the same key: computer-linker hub trust {machine['key']}"
                )


def _invite(
    name: Annotated[str, typer.Argument(help="The machine's name.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where to write the invitation; nobody else may read it.")],
    as_json: AsJson = False,
) -> None:
    """Invite a machine: a file that lets it in, once, and proves both sides to each other."""
    import json
    import os

    answer = control("hub.invite", name=name)
    handle = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="ascii") as file:
        json.dump(answer["invitation"], file, indent=1)
    if as_json:
        print_json({"ok": True, "file": str(out), "url": answer["invitation"]["url"]})
    else:
        say(str(out))
        note(f"On {name}, with this file: computer-linker join --creds {out.name} --allow SCOPE")


def _trust(
    key: Annotated[str, typer.Argument(help="The machine's key, or its first digits.")], as_json: AsJson = False
) -> None:
    """Trust a machine that asked to join. Compare the key with what it shows itself."""
    answer = control("hub.trust", key=key)
    print_json(answer) if as_json else say(f"{answer['trusted']} is trusted.")


def _forget(name: Annotated[str, typer.Argument(help="The machine's name or id.")], as_json: AsJson = False) -> None:
    """Trust a machine no more. Its history stays."""
    answer = control("hub.forget", name=name)
    print_json(answer) if as_json else say(f"{answer['forgotten']} is no longer trusted.")


def _history(
    machines: Annotated[
        str, typer.Argument(help="MACHINE, MACHINE/SCOPE, a query such as [os=linux], or [all].")
    ] = "[all]",
    view: Annotated[str, typer.Option(help="last, timeline or verify.")] = "last",
    query: Annotated[str | None, typer.Option(help="As for: computer-linker history.")] = None,
    limit: Annotated[int, typer.Option(help="How many events.")] = 50,
    as_json: AsJson = False,
) -> None:
    """What happened on all machines, those that are away too."""
    from computer_linker.client.socket_client import call_service

    address = machines if "/" in machines or machines.startswith("[") else f"{machines}/"
    asked: dict[str, Any] = {"scope": address, "view": view, "limit": limit}
    answer = call_service(state_home(), "get_operation_history", asked if query is None else asked | {"query": query})
    error = answer.get("error")
    if error:
        raise refused(error, address) if isinstance(error, dict) else CliError(str(error))
    if as_json:
        print_json(answer)
    elif view == "verify":
        rows = [
            (m["machine"], "ok" if m["valid"] else "error", str(m["records"]), m["problem"] or "")
            for m in answer["machines"]
        ]
        table(rows, ("machine", "history", "records", "problem"))
        if not answer["valid"]:
            raise typer.Exit(1)
    else:
        table([(e["startedAt"], e["scope"], e["op"], e["outcome"], e["target"] or "") for e in answer["events"]])


def _row(machine: dict[str, Any]) -> tuple[str, ...]:
    scopes = ", ".join(scope["id"] for scope in machine.get("scopes", []))
    return machine["name"], machine["state"], f"{machine.get('os')} {machine.get('arch')}", scopes, machine["machineId"]

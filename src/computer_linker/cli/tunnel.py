"""tunnel: make MCP reachable from elsewhere, see whether it is, and take it back."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from computer_linker.cli.output import CliError, note, print_json, say, table
from computer_linker.cli.places import current_config, running_service, state_home

if TYPE_CHECKING:
    from computer_linker.config.schema import TunnelName

Json = Annotated[bool, typer.Option("--json", help="Answer as JSON.")]
Provider = Annotated[str, typer.Argument(help="cloudflare, cloudflare-named, tailscale, openai or manual.")]
Text = str | None
_SHOWN_LINES = 8
_RUNS = {"cloudflare": "cloudflare", "cloudflare-named": "cloudflare", "tailscale": "tailscale", "openai": "openai"}
"""Where the config keeps the program of each provider that runs one."""


def register(app: typer.Typer) -> None:
    """Add `tunnel` and its commands, and `expose`."""
    group = typer.Typer(help="Reach this computer from elsewhere, MCP alone.", rich_markup_mode=None)
    app.add_typer(group, name="tunnel", no_args_is_help=True)
    group.command("status")(_status)
    group.command("start")(_start)
    group.command("stop")(_stop)
    group.command("detect")(_detect)
    app.command("expose")(_expose)


def checked_tunnel(home: Path, name: str | None) -> "TunnelName | None":
    """The provider, when it may and can be opened here. Raises CliError, having changed nothing."""
    if name is None:
        return None
    from computer_linker.service.tunnels import check_can_open, surroundings_without_service

    wished = _known(name)
    check_can_open(wished, surroundings_without_service(home, current_config(home)))
    return wished


def _known(name: str) -> "TunnelName":
    from computer_linker.tunnels.catalog import NAMES

    if name not in NAMES:
        raise CliError(f"there is no tunnel provider {name[:40]!r}", "there are: " + ", ".join(NAMES), 2)
    return cast("TunnelName", name)


def expose_running(name: "TunnelName", *, keep: bool, as_json: bool = False) -> None:
    """Have the running service open the tunnel; with `keep`, at each of its starts."""
    from computer_linker.service.tunnels import keep_wish

    answer = _ask("tunnel.start", provider=name)
    if keep:
        keep_wish(state_home(), name)
    _told(answer["tunnel"], as_json=as_json)


def _start(
    provider: Provider,
    once: Annotated[bool, typer.Option("--once", help="For this run of the service only.")] = False,
    hostname: Annotated[Text, typer.Option(help="cloudflare-named: the hostname that leads here.")] = None,
    name: Annotated[Text, typer.Option(help="cloudflare-named: a tunnel made by cloudflared on this computer.")] = None,
    token_file: Annotated[Path | None, typer.Option(help="cloudflare-named: a private file with its token.")] = None,
    tunnel_client: Annotated[Path | None, typer.Option(help="openai: where tunnel-client is.")] = None,
    sha256: Annotated[Text, typer.Option(help="openai: the digest tunnel-client must have.")] = None,
    tunnel_id: Annotated[Text, typer.Option(help="openai: the id of the tunnel, tunnel_...")] = None,
    api_key_file: Annotated[Path | None, typer.Option(help="openai: a private file with the API key.")] = None,
    program: Annotated[Path | None, typer.Option(help="Where the provider's program is.")] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="The loopback port it leads to; 0 picks one.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Open a tunnel to the running service, and again at each of its starts until `tunnel stop`."""
    home = state_home()
    if _known(provider) not in _RUNS and program is not None:
        raise CliError(f"{provider} runs no program", "leave --program out", 2)
    if running_service(home) is None:
        raise CliError("no service runs", f"computer-linker start --tunnel {provider}")
    _keep_settings(home, {
        ("cloudflare", "hostname"): hostname, ("cloudflare", "name"): name, ("cloudflare", "tokenFile"): _whole(token_file),
        ("openai", "program"): _whole(tunnel_client), ("openai", "sha256"): sha256, ("openai", "tunnelId"): tunnel_id,
        ("openai", "apiKeyFile"): _whole(api_key_file), ("", "port"): port,
    })  # fmt: skip
    if program is not None:
        _keep_settings(home, {(_RUNS[provider], "program"): _whole(program)})
    wished = checked_tunnel(home, provider)
    assert wished is not None, "a provider was named"
    expose_running(wished, keep=not once, as_json=as_json)


def _stop(as_json: Json = False) -> None:
    """Close the tunnel, and open none at the next start."""
    from computer_linker.service.tunnels import keep_wish

    home = state_home()
    keep_wish(home, None)
    service = running_service(home)
    answer = (
        _ask("tunnel.stop") if service is not None and service.get("localUrl") else {"tunnel": _seen(home)["tunnel"]}
    )
    if as_json:
        print_json(answer["tunnel"])
    else:
        note("No tunnel is open.")


def _status(
    check: Annotated[bool, typer.Option("--check", help="Ask the public address whether it leads here.")] = False,
    as_json: Json = False,
) -> None:
    """Show the tunnel, its address and the providers of this machine; ends non-zero when a wished tunnel is not open."""
    home = state_home()
    answer = _seen(home)
    answer["wished"] = current_config(home).tunnel.provider
    if check:
        answer["check"] = _checked(answer["tunnel"]["publicUrl"])
    if as_json:
        print_json(answer)
    else:
        _show(answer)
    is_open = answer["tunnel"]["state"] in ("running", "reconnecting")
    fails = (answer["wished"] is not None and not is_open) or (check and not answer["check"]["ok"])
    raise typer.Exit(1 if fails else 0)


def _detect(as_json: Json = False) -> None:
    """Which providers could be used here, and what the others lack. Runs none of them."""
    providers = _seen(state_home())["providers"]
    if as_json:
        print_json({"providers": providers})
    else:
        _show_providers(providers)


def _expose(provider: Provider) -> None:
    """Serve what is configured and open a tunnel to it: the older form of `start --tunnel`."""
    from computer_linker.cli.start import run
    from computer_linker.service.setup import Wishes

    run(Wishes(None, None, False, False, False), None, None, provider)


def _seen(home: Path) -> dict[str, Any]:
    """From the service when one serves HTTP, else from what it left; the same either way."""
    from computer_linker.service.tunnels import report, surroundings_without_service
    from computer_linker.tunnels.record import read

    service = running_service(home)
    if service is not None and service.get("localUrl"):
        answer = _ask("tunnel.status")
        return {name: answer[name] for name in ("tunnel", "providers", "providerContracts")}
    return report(surroundings_without_service(home, current_config(home)), read(home))


def _checked(url: str | None) -> dict[str, Any]:
    import anyio

    from computer_linker.errors import ExecutionFailed
    from computer_linker.tunnels.manual import check_address

    if url is None:
        return {"ok": False, "problem": "There is no public address."}
    try:
        anyio.run(check_address, url)
    except ExecutionFailed as error:
        return {"ok": False, "problem": error.message}
    return {"ok": True, "problem": None}


def _show(answer: dict[str, Any]) -> None:
    tunnel = answer["tunnel"]
    rows = [
        ("tunnel", tunnel["provider"] or "none"), ("state", tunnel["state"]), ("address", tunnel["publicUrl"]),
        ("tunnel id", tunnel.get("tunnelId")), ("since", tunnel.get("since")), ("restarts", tunnel.get("restarts") or None),
        ("why", tunnel.get("lastError")), ("hint", tunnel.get("hint")), ("next try", tunnel.get("retryAt")),
        ("at each start", answer["wished"]), ("check", answer.get("check") and (answer["check"]["problem"] or "ok")),
    ]  # fmt: skip
    table([(name, str(value)) for name, value in rows if value is not None])
    if tunnel["state"] not in ("running", "stopped"):
        for line in tunnel["output"][-_SHOWN_LINES:]:
            say(f"  {line}")
    say()
    _show_providers(answer["providers"])


def _show_providers(providers: list[dict[str, Any]]) -> None:
    rows = [
        (found["name"], "ok" if found["available"] else "missing", found["program"] or "", found["problem"] or "")
        for found in providers
    ]
    table(rows, ("provider", "", "program", ""))


def _told(tunnel: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(tunnel)
    elif tunnel["state"] == "running":
        say(f"{tunnel['publicUrl']}/mcp" if tunnel["publicUrl"] else str(tunnel["tunnelId"]))
    if tunnel["state"] != "running":
        raise CliError(f"the tunnel is {tunnel['state']}: {tunnel.get('lastError') or ''}", tunnel.get("hint") or "")


def _keep_settings(home: Path, given: dict[tuple[str, str], str | int | None]) -> None:
    from computer_linker.config.store import update

    settings = {key: value for key, value in given.items() if value is not None}
    if not settings:
        return

    def edit(document: dict[str, Any]) -> None:
        tunnel = document.setdefault("tunnel", {})
        for (group, field), value in settings.items():
            (tunnel.setdefault(group, {}) if group else tunnel)[field] = value

    update(home, edit)


def _whole(path: Path | None) -> str | None:
    return None if path is None else str(path.expanduser().absolute())


def _ask(action: str, **request: Any) -> dict[str, Any]:
    from computer_linker.client.socket_client import ask_service

    answer = ask_service(state_home(), {"action": action, **request})
    if answer is None:
        raise CliError("no service runs", "computer-linker start --tunnel PROVIDER")
    if not answer.get("ok"):
        raise CliError(str(answer.get("error", "the service did not answer")), str(answer.get("hint") or ""))
    return answer

"""doctor: all findings; `--fix` makes the repairs that have one right answer."""

from pathlib import Path
from typing import Annotated, Any

import typer

from computer_linker.cli.output import note, print_json, say, table
from computer_linker.cli.places import current_config, running_service, state_home
from computer_linker.config.schema import Config


def register(app: typer.Typer) -> None:
    """Add `doctor`."""

    @app.command()
    def doctor(
        fix: Annotated[bool, typer.Option("--fix", help="Make the repairs that have one right answer.")] = False,
        as_json: Annotated[bool, typer.Option("--json", help="Answer as JSON.")] = False,
    ) -> None:
        """Look at config, security, programs and release readiness."""
        from computer_linker.cli.owner import ask
        from computer_linker.owner.doctor.fix import Repairs, doctor_fix
        from computer_linker.service.doctor import diagnostics

        home = state_home()
        repairs = ask(doctor_fix, None, Repairs).repairs if fix else []
        found = diagnostics(current_config(home), home)
        answer = {"home": str(home), "repairs": repairs, **found.to_wire(), **_surroundings(found.config, home)}
        if as_json:
            print_json(answer)
        else:
            for sentence in repairs:
                note(sentence)
            show(answer)
        raise typer.Exit(0 if answer["status"]["ready"] else 1)


def _surroundings(config: Config, home: Path) -> dict[str, Any]:
    """Facts about this machine and the running service."""
    from computer_linker.computer.local.probe import this_computer
    from computer_linker.service.doctor import facet_states
    from computer_linker.service.tunnels import report, surroundings_without_service
    from computer_linker.tunnels.record import read

    service = running_service(home)
    base = f"http://{config.host}:{config.port}"
    return {
        "service": {"running": service is not None, "localUrl": (service or {}).get("localUrl")},
        "urls": {"mcp": f"{base}/mcp", "api": f"{base}/api/v1/control", "public": config.public_base_url},
        "tunnels": report(surroundings_without_service(home, config), read(home)),
        # As seen from this terminal; a service started elsewhere may see another desktop.
        "facets": facet_states(this_computer()),
    }


def show(answer: dict[str, Any]) -> None:
    """Findings, programs and release checks, for people."""
    service = answer["service"]
    table(
        [
            ("status", "ready" if answer["status"]["ready"] else "not ready"),
            ("service", (service["localUrl"] or "running for local clients") if service["running"] else "not running"),
            ("MCP", answer["urls"]["mcp"]),
            ("JSON API", answer["urls"]["api"]),
            ("tunnel", _tunnel(answer["tunnels"]["tunnel"])),
            ("state folder", answer["home"]),
        ]
    )
    findings = [*answer["security"], *answer["config"]]
    if findings:
        say()
        table([(found["severity"], found["message"], found["remedy"]) for found in findings], ("", "finding", "remedy"))
    say()
    rows = [
        (
            name,
            "ok" if tool["available"] else "missing",
            tool["need"],
            tool["version"] or "",
            tool["remedy"] or tool["path"],
        )
        for name, tool in answer["tools"].items()
    ]
    table(rows, ("program", "", "need", "version", ""))
    say()
    table(_grouped(answer["facets"]), ("abilities", "", ""))
    say()
    release = answer["releaseReadiness"]
    failed = [check["wants"] for check in release["checks"] if not check["passed"]]
    table([("release", release["status"]), *(("wants", want) for want in failed)])
    fixable = [found for found in findings if found["fixable"]]
    if fixable:
        say(f"next: computer-linker doctor --fix repairs {len(fixable)} of these")


def _tunnel(tunnel: dict[str, Any]) -> str:
    if tunnel["provider"] is None:
        return "none"
    state = f"{tunnel['provider']} {tunnel['state']}"
    why = tunnel["publicUrl"] or tunnel["tunnelId"] or tunnel["lastError"]
    return f"{state}: {why}" if why and tunnel["state"] != "stopped" else state


def _grouped(facets: dict[str, Any]) -> list[tuple[str, str, str]]:
    """One row for all the abilities that are in the same state for the same reason."""
    rows: dict[tuple[str, str], list[str]] = {}
    for name, facet in facets.items():
        rows.setdefault((facet["state"], f"{facet['reason']} {facet['remedy']}".strip()), []).append(name)
    return [(" ".join(names), state, why) for (state, why), names in rows.items()]

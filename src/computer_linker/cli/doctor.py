"""doctor: all findings; `--fix` makes the repairs that have one right answer."""

from typing import Annotated

import typer

from computer_linker.cli.output import CliError, fail, print_json, say, table
from computer_linker.cli.owner import ask
from computer_linker.cli.status import show_listeners
from computer_linker.computer.manifest import FacetState
from computer_linker.owner.doctor.fix import Repairs, doctor_fix
from computer_linker.owner.doctor.look import doctor_look
from computer_linker.service.reports import DoctorReport, fixable
from computer_linker.service.tunnels import TunnelProcess


def register(app: typer.Typer) -> None:
    """Add `doctor`."""

    @app.command()
    def doctor(
        fix: Annotated[bool, typer.Option("--fix", help="Make the repairs that have one right answer.")] = False,
        as_json: Annotated[bool, typer.Option("--json", help="Answer as JSON.")] = False,
    ) -> None:
        """Look at config, security, listeners and programs; --fix repairs."""
        repairs, refused = _repairs() if fix else ([], None)
        answer = ask(doctor_look, None, DoctorReport).model_copy(update={"repairs": repairs})
        if as_json:
            print_json(answer.to_wire())
        else:
            show(answer)
            for sentence in repairs:
                say(sentence)
        if refused is not None:
            is_listed = any(refused.message in found.message for found in answer.findings)
            fail("There is no repair for what is listed above." if is_listed else refused.message, refused.hint)
        raise typer.Exit(0 if answer.status.ready and refused is None else 1)


def _repairs() -> tuple[list[str], CliError | None]:
    """What was repaired, or why nothing could be."""
    try:
        return ask(doctor_fix, None, Repairs).repairs, None
    except CliError as error:
        return [], error


def show(answer: DoctorReport) -> None:
    """Findings, listeners, programs and abilities, for people."""
    service = answer.service
    table(
        [
            ("status", "ready" if answer.status.ready else "not ready"),
            ("service", (service.local_url or "running for local clients") if service.running else "not running"),
            ("MCP", answer.urls.mcp),
            ("JSON API", answer.urls.api),
            ("tunnel", _tunnel(answer.tunnels.tunnel)),
            ("state folder", answer.home),
            ("user", f"{answer.user.name}{', elevated' if answer.user.elevated else ''}"),
        ]
    )
    if answer.findings:
        say()
        rows = [(found.severity, found.message, found.remedy) for found in answer.findings]
        table(rows, ("", "finding", "remedy"))
    if answer.listeners:
        say()
        show_listeners(answer.listeners)
    say()
    _programs(answer)
    say()
    table(_grouped(answer.facets), ("abilities", "", ""))
    count = fixable(answer.findings)
    if count:
        say(f"next: computer-linker doctor --fix repairs {count} of these")


def _programs(answer: DoctorReport) -> None:
    rows = [
        (name, "ok" if tool.available else "missing", tool.need, tool.version or "", tool.remedy or tool.path or "")
        for name, tool in answer.tools.items()
    ]
    table(rows, ("program", "", "need", "version", ""))


def _tunnel(tunnel: TunnelProcess) -> str:
    if tunnel.provider is None:
        return "none"
    state = f"{tunnel.provider} {tunnel.state}"
    why = tunnel.public_url or tunnel.tunnel_id or tunnel.last_error
    return f"{state}: {why}" if why and tunnel.state != "stopped" else state


def _grouped(facets: dict[str, FacetState]) -> list[tuple[str, str, str]]:
    """One row for all the abilities that are in the same state for the same reason."""
    rows: dict[tuple[str, str], list[str]] = {}
    for name, facet in facets.items():
        rows.setdefault((facet.state, f"{facet.reason} {facet.remedy}".strip()), []).append(name)
    return [(" ".join(names), state, why) for (state, why), names in rows.items()]

"""doctor: everything that was looked at; `--fix` makes the repairs that have one right answer."""

from typing import Annotated, Any

import typer

from computer_linker.cli.output import note, print_json, say, table
from computer_linker.cli.places import current_config, state_home


def register(app: typer.Typer) -> None:
    """Add `doctor`."""

    @app.command()
    def doctor(
        fix: Annotated[bool, typer.Option("--fix", help="Make the repairs that have one right answer.")] = False,
        as_json: Annotated[bool, typer.Option("--json", help="Answer as JSON.")] = False,
    ) -> None:
        """Look at config, security, programs and release readiness."""
        from computer_linker.config.repair import repair
        from computer_linker.service.doctor import diagnostics
        from computer_linker.service.settings import check

        home = state_home()
        repairs = repair(home, check) if fix else []
        found = diagnostics(current_config(home), home)
        answer = {"home": str(home), "repairs": repairs, **found.to_wire()}
        if as_json:
            print_json(answer)
        else:
            for sentence in repairs:
                note(sentence)
            show(answer)
        raise typer.Exit(0 if answer["status"]["ready"] else 1)


def show(answer: dict[str, Any]) -> None:
    """Findings, programs and release checks, for people."""
    table([("status", "ready" if answer["status"]["ready"] else "not ready"), ("state folder", answer["home"])])
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
    release = answer["releaseReadiness"]
    failed = [check["wants"] for check in release["checks"] if not check["passed"]]
    table([("release", release["status"]), *(("wants", want) for want in failed)])
    fixable = [found for found in findings if found["fixable"]]
    if fixable:
        say(f"next: computer-linker doctor --fix repairs {len(fixable)} of these")

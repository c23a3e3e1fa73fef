"""op: run one operation from the command line; its help comes from the catalogue."""

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from computer_linker.cli.output import CliError, note, print_json, say, table
from computer_linker.cli.places import current_config, state_home
from computer_linker.errors import InvalidRequest, UnknownOperation

if TYPE_CHECKING:
    from computer_linker.registry.catalog import Catalog
    from computer_linker.registry.operation import Operation


def register(app: typer.Typer) -> None:
    """Add `op`."""
    app.command("op", add_help_option=False)(_op)


def _op(
    name: Annotated[str | None, typer.Argument(help="The operation.", autocompletion=lambda: _names())] = None,
    target: Annotated[str | None, typer.Argument(help="What it is about: a path in the scope, an id.")] = None,
    scope: Annotated[
        str | None, typer.Option(help="Needed when there are several.", autocompletion=lambda: _scopes())
    ] = None,
    on: Annotated[
        str | None, typer.Option(help="Another computer to run it on (see: computer-linker computers).")
    ] = None,
    input: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="What it needs; @FILE and @- read text.")
    ] = None,
    option: Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="Limits, filters and formats.")] = None,
    confirm: Annotated[str | None, typer.Option(help="The confirmation token, once approved.")] = None,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="Answer with the whole envelope as JSON.",
        ),
    ] = False,
    show_help: Annotated[bool, typer.Option("--help", "-h", help="Show the operation's own help.")] = False,
) -> None:
    """Run one operation in the service, starting it when none runs."""
    from computer_linker.registry.catalog import find_one
    from computer_linker.registry.cli_options import help_text

    if name is None:
        _list(_catalog(), as_json=as_json)
        return
    operation = find_one("computer_linker.operations", name) or _find(_catalog(), name)
    if show_help:
        say(help_text(operation).rstrip("\n"))
        return
    arguments = _arguments(operation, target, input or [], option or [])
    if on is not None and scope is None:
        raise CliError("--on needs --scope: the scope's name on that computer", exit_code=2)
    arguments |= {"scope": f"{on}/{scope}" if on is not None else scope or _only_scope(operation), "op": name}
    if confirm is not None:
        arguments["confirm"] = {"token": confirm}
    _send(operation, arguments, as_json=as_json)


def _arguments(operation: "Operation", target: str | None, inputs: list[str], options: list[str]) -> dict[str, Any]:
    from computer_linker.registry.cli_options import fields_of, read_arguments, read_value
    from computer_linker.registry.schema import parameter_schemas

    arguments: dict[str, Any] = {}
    if target is not None:
        arguments["target"] = read_value(target) if target.lstrip().startswith("{") else target
    try:
        if inputs:
            arguments["input"] = read_arguments(operation, "input", inputs, _read_file)
        if options:
            arguments["options"] = read_arguments(operation, "options", options, _read_file)
    except InvalidRequest as error:
        raise CliError(error.message, f"computer-linker op {operation.name} --help", 2) from None
    returned = fields_of(parameter_schemas(operation).properties.get("options")).get("return", {})
    if "fileRef" in returned.get("enum", ()):
        # A terminal has no image blocks.
        arguments["options"] = {"return": "fileRef", **arguments.get("options", {})}
    return arguments


def _send(operation: "Operation", arguments: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        envelope = envelope_of(arguments)
        print_json(envelope)
        raise typer.Exit(0 if envelope.get("ok") else 1)
    _show(operation, answer_of(arguments))


def _show(operation: "Operation", data: Any) -> None:
    """Text as text when text is the answer (a file, a diff, a command's output); else rows on a terminal, JSON in a pipe."""
    from computer_linker.registry.text import render

    if isinstance(data, dict):
        for field in ("content", "diff", "stdout"):
            if isinstance(data.get(field), str):
                # Where the text is a part of the answer, as a diff beside the list of changes, all of it is shown.
                is_part = bool(operation.text.fields.keys() - {field})
                sys.stdout.write(f"{render(data, operation.text)}\n" if is_part else data[field])
                sys.stderr.write(str(data.get("stderr") or ""))
                _note_outcome(data)
                return
    if sys.stdout.isatty():
        from computer_linker.cli.render import print_result

        print_result(data)
    else:
        print_json(data)


def _note_outcome(data: dict[str, Any]) -> None:
    """Print notes that the text alone does not show: a failed or timed-out program, and truncated output."""
    sys.stdout.flush()
    if data.get("timedOut"):
        note("(stopped: its time was over; --option timeoutSeconds=N gives it more)")
    elif data.get("exitCode"):
        note(f"(exit code {data['exitCode']})")
    if view := data.get("view"):
        note(f"(its changes are on view {view['viewId']}; computer-linker op view.show {view['viewId']} shows them)")
    if data.get("truncated"):
        note("(cut: this is not all of it; --json tells more)")


def _list(catalog: "Catalog", *, as_json: bool) -> None:
    """Every operation with the first sentence of its docstring."""
    rows = [
        (op.name, op.effect.value, re.split(r"\.(?:\s|$)", " ".join(op.summary.split()))[0])
        for op in catalog.operations.values()
    ]
    if as_json:
        print_json([{"name": name, "effect": effect, "summary": summary} for name, effect, summary in rows])
    else:
        table(rows, ("operation", "effect", "what it does"))
        note("computer-linker op NAME --help shows one in full")


def _find(catalog: "Catalog", name: str) -> "Operation":
    try:
        return catalog.find(name)
    except UnknownOperation as error:
        similar = error.details.get("similar")
        hint = f"did you mean {' or '.join(similar)}?" if isinstance(similar, list) and similar else ""
        raise CliError(f"there is no operation {name}", hint or "computer-linker op lists them", 2) from None


def _only_scope(operation: "Operation") -> str:
    """Return the only scope the operation can run in; with several, the caller must name one."""
    from computer_linker.cli.owner import ask
    from computer_linker.owner.scope.list import Scopes, scope_list

    scopes = ask(scope_list, None, Scopes).scopes
    fitting = [scope.id for scope in scopes if operation.on in ("any", scope.type)]
    if len(fitting) == 1:
        return fitting[0]
    if not fitting:
        raise CliError(f"there is no {operation.on} scope for {operation.name}", "computer-linker scope add FOLDER")
    raise CliError("which scope?", f"--scope {' or '.join(fitting)}", 2)


def _read_file(name: str) -> str:
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CliError(f"{name} cannot be read as text: {error}") from None


def _catalog() -> "Catalog":
    from computer_linker import operations
    from computer_linker.registry.catalog import collect

    return collect(operations)


def _names() -> list[str]:
    return sorted(_catalog().by_name)


def _scopes() -> list[str]:
    return [scope.id for scope in current_config(state_home()).scopes]


def answer_of(request: dict[str, Any]) -> dict[str, Any]:
    """Return the operation's data and print its warnings. Raises CliError for a refusal."""
    envelope = envelope_of(request)
    if "ok" not in envelope:
        raise CliError(str(envelope.get("error", "the service refused the request")))
    if not envelope["ok"]:
        raise refused(envelope["error"], request["scope"])
    for warning in envelope["warnings"]:
        note(f"warning: {warning}")
    data: dict[str, Any] = envelope["data"]
    return data


def envelope_of(request: dict[str, Any]) -> dict[str, Any]:
    """Return the whole envelope."""
    from computer_linker.client.socket_client import ask_or_start, ask_service

    home, wanted = state_home(), {"tool": "computer_operation", "arguments": request}
    # A running service goes on with the last valid config.
    answer = ask_service(home, wanted)
    if answer is None:
        # An invalid config is reported with its own message, before a service is started.
        current_config(home)
        answer = ask_or_start(home, wanted)
    return answer


def refused(error: Mapping[str, Any], scope: str) -> CliError:
    """Return a failure's `error` as one line and a hint."""
    from computer_linker.service.run_for_owner import hint_of

    hint = "computer-linker scope list" if error["code"] == "unknown_scope" else ""
    return CliError(f"{error['code']}: {error['message']}", hint or hint_of(error.get("details") or {}, scope))

"""The owner's commands, derived from the owner's operations: command words, arguments, options, help and output."""

import importlib
import inspect
import pkgutil
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, get_args, get_origin

import typer

from computer_linker import owner
from computer_linker.cli.output import CliError, note, print_json, progress, say, table, visible
from computer_linker.cli.places import current_config, state_home
from computer_linker.client.socket_client import Report, ask_or_start, ask_service
from computer_linker.errors import InvalidRequest
from computer_linker.model.base import Model
from computer_linker.model.effect import Effect
from computer_linker.registry.operation import Operation, without_none
from computer_linker.registry.owner import LocalPath, Named, Note, Positional, ScopeId, Secret, Shown, Table, Where

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

R = TypeVar("R", bound=Model)
_LOCKED_S, _POLL_S = 20.0, 0.05
_AS_JSON = inspect.Parameter(
    "as_json",
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[bool, typer.Option("--json", help="Answer as JSON.")],
)


def modules_of(first: str) -> list[str]:
    """The modules of the owner's operations whose command begins with this word; of every operation where it is empty."""
    found = pkgutil.walk_packages(owner.__path__, owner.__name__ + ".")
    names = [module.name for module in found if not module.ispkg]
    return [name for name in names if not first or name.split(".")[2].replace("_", "-") == first]


def register(app: typer.Typer, first: str = "") -> None:
    """Add every owner's operation as a command, or those of one first word; a folder is a group of commands."""
    for name in modules_of(first):
        _add(app, importlib.import_module(name))


def ask(op: Operation, given: Model | None, kind: type[R], where: Where | None = None) -> R:
    """Return the typed result of one owner's operation, for a command with its own output."""
    wire = given.model_dump(mode="json", by_alias=True) if given is not None else {}
    return kind.from_wire(_data(op, wire, where))


def _group(app: typer.Typer, name: str) -> typer.Typer:
    """Return the command group of this name, also one that a module of this package registered already."""
    for known in app.registered_groups:
        if known.name == name and known.typer_instance is not None:
            return known.typer_instance
    help = inspect.getdoc(importlib.import_module(f"{owner.__name__}.{name.replace('-', '_')}"))
    group = typer.Typer(help=help, rich_markup_mode=None, no_args_is_help=True)
    app.add_typer(group, name=name)
    return group


def _add(app: typer.Typer, module: ModuleType) -> None:
    for op in vars(module).values():
        if isinstance(op, Operation) and op.run.__module__ == module.__name__ and op.command and op.command.is_derived:
            for words in op.command.words or (_words(op),):
                group, _, name = words.rpartition(" ")
                (_group(app, group) if group else app).command(name, help=op.summary)(_command(op))


def _command(op: Operation) -> Callable[..., None]:
    """Return a function with the signature from which typer builds a command."""
    model = _input_model(op)
    fields = model.model_fields if model is not None else {}

    def run(**words: Any) -> None:
        as_json = words.pop("as_json")
        given = {name: _word(fields[name], value) for name, value in words.items() if value not in (None, [])}
        if not given and op.command is not None and op.command.bare is not None:
            _answer(op.command.bare, _data(op.command.bare, {}), as_json=as_json)
        else:
            _answer(op, _checked(op, given, model), as_json=as_json)

    run.__signature__ = inspect.Signature([*(_parameter(n, f) for n, f in fields.items()), _AS_JSON])  # type: ignore[attr-defined]
    run.__annotations__ = {name: parameter.annotation for name, parameter in inspect.signature(run).parameters.items()}
    return run


def _answer(op: Operation, result: dict[str, Any], *, as_json: bool) -> None:
    shown = op.hints["return"].from_wire(result)
    if as_json:
        print_json(result)
    else:
        show(op, shown)
    if op.command is not None and op.command.exit_code is not None:
        raise typer.Exit(op.command.exit_code(shown))


def show(op: Operation, result: Model) -> None:
    """Print a result for a person: by the operation's `text`, else one row per field."""
    text = op.command.text if op.command is not None else None
    lines: Iterable[Shown] = text(result) if text is not None else [Table(_rows(result))]
    for line in lines:
        match line:
            case Table(rows, headers):
                table(rows, headers)
            case Note(sentence):
                note(visible(sentence))
            case _:
                say(visible(line))


def _rows(result: Model) -> list[tuple[str, str]]:
    return [(name, str(value)) for name, value in result.to_wire().items() if value is not None]


def _checked(op: Operation, given: dict[str, Any], model: type[Model] | None) -> dict[str, Any]:
    """Return the result. Invalid input is a usage error, and nothing is sent."""
    wire = {model.model_fields[name].alias or name: value for name, value in given.items()} if model is not None else {}
    try:
        op.parse(None, wire, None)
    except InvalidRequest as error:
        raise CliError(error.message, f"computer-linker {_words(op)} --help", 2) from None
    if model is not None and op.command is not None and op.command.cautions is not None:
        warn_first(op.command.cautions(model.from_wire(wire), state_home()))
    return _data(op, wire)


def warn_first(cautions: list[str]) -> None:
    """Show what a person should know first, and ask at a terminal whether to go on. Raises CliError for a no."""
    for sentence in cautions:
        note(f"warning: {sentence}")
    if cautions and _is_asked_at_a_terminal() and not typer.confirm("Go on?", err=True):
        raise CliError("nothing was changed")


def _is_asked_at_a_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _data(op: Operation, given: dict[str, Any], where: Where | None = None) -> dict[str, Any]:
    with progress() as report:
        envelope = _envelope(op, given, where or (op.command.where if op.command is not None else "service"), report)
    if envelope is None:
        assert op.command is not None and op.command.idle is not None, "only such a command runs nothing"
        return op.command.idle.to_wire()
    if "ok" not in envelope:
        raise CliError(str(envelope.get("error", "the service refused the request")))
    if not envelope["ok"]:
        again = (envelope["error"].get("details") or {}).get("again")
        if again is None or not _is_asked_at_a_terminal():
            raise _refused(envelope["error"])
        warn_first([envelope["error"]["message"]])
        return _data(op, {**given, **again}, where)
    for warning in envelope["warnings"]:
        note(f"warning: {warning}")
    data: dict[str, Any] = envelope["data"]
    return data


def _envelope(op: Operation, given: dict[str, Any], where: Where, report: Report | None) -> dict[str, Any] | None:
    """Run the operation where it belongs and return the envelope; None when it needs a running service and none runs."""
    home, request = state_home(), {"owner": op.name, "input": given}
    command = op.command
    match where:
        case "terminal":
            from computer_linker.serve.owner_calls import call_here

            return call_here(home, op, given)
        case "service":
            return ask_or_start(home, request, report, is_question=op.effect is Effect.OBSERVE)
        case "running":
            # To `stop` a service that ends before it answers is no loss: that is what was wanted.
            is_harmless = op.effect is Effect.OBSERVE or (command is not None and command.idle is not None)
            answer = ask_service(home, request, report=report, is_question=is_harmless)
            if answer is None and (command is None or command.idle is None):
                raise CliError("no service runs", "computer-linker start FOLDER")
            return answer
        case _:
            return _in_service_or_here(op, home, request, report)


def _in_service_or_here(op: Operation, home: Path, request: dict[str, Any], report: Report | None) -> dict[str, Any]:
    until = time.monotonic() + _LOCKED_S
    while time.monotonic() < until:
        answer = ask_service(home, request, report=report, is_question=op.effect is Effect.OBSERVE)
        if answer is None:
            from computer_linker.serve.owner_calls import call_without_service

            answer = call_without_service(home, op, request["input"])
        if answer is not None:
            return answer
        # The lock is held by another command, or by a service that does not listen yet.
        time.sleep(_POLL_S)
    raise CliError("another command or a service holds the state folder and does not answer", "computer-linker doctor")


def _refused(error: dict[str, Any]) -> CliError:
    details = error.get("details") or {}
    similar = details.get("similar")
    hint = f"did you mean {' or '.join(similar)}?" if similar else details.get("hint") or details.get("remedy") or ""
    return CliError(error["message"], str(hint), 2 if error["code"] == "invalid_request" else 1)


def _input_model(op: Operation) -> type[Model] | None:
    kind = without_none(op.hints["input"]) if "input" in op.parameters else None
    return kind if isinstance(kind, type) and issubclass(kind, Model) else None


def _words(op: Operation) -> str:
    return op.name.replace(".", " ").replace("_", "-")


def _parameter(name: str, field: "FieldInfo") -> inspect.Parameter:
    """Return the field as a typer parameter. The model validates its value."""
    marks = {type(mark): mark for mark in field.metadata}
    complete = _scope_ids if ScopeId in marks else None
    place = marks.get(Positional)
    needed = field.is_required()
    shown: Any
    if isinstance(place, Positional):
        metavar = place.metavar or name.upper().replace("_", "-")
        shown = typer.Argument(help=field.description, metavar=metavar, autocompletion=complete)
    else:
        named = marks.get(Named) or Named()
        names = named.names or (f"--{name.replace('_', '-')}",)
        is_secret = Secret in marks
        value = "FILE" if is_secret else named.metavar
        help = f"{field.description}{' Read from this file; - is standard input, and asks at a terminal.' if is_secret else ''}"
        shown = typer.Option(*names, help=help, metavar=value, autocompletion=complete)
    default = inspect.Parameter.empty if needed else field.get_default(call_default_factory=True)
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[_typed(field.annotation), shown]
    )


def _typed(hint: Any) -> Any:
    """Return the type for typer: a choice, a list, a number, a flag, or text."""
    kind = without_none(hint)
    if get_origin(kind) is Literal:
        return hint
    if get_origin(kind) is list:
        return list[str] | None if any(get_origin(part) is Literal for part in get_args(kind)) else hint
    return hint if kind in (bool, int, float, str) else str | None


def _secret(place: str) -> str:
    """A secret from a file; `-` is standard input, which a person is asked for without showing what they type."""
    if place == "-" and sys.stdin.isatty():
        given: str = typer.prompt("Token", hide_input=True, err=True)
    else:
        try:
            given = sys.stdin.read() if place == "-" else Path(place).expanduser().read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise CliError(
                f"{place} cannot be read: {error}", "name a text file with the token, or - for standard input", 2
            ) from None
    if not given.strip():
        raise CliError("the token is empty", "name a text file with the token, or - for standard input", 2)
    return given.strip()


def _word(field: "FieldInfo", value: Any) -> Any:
    if any(isinstance(mark, Secret) for mark in field.metadata):
        return _secret(value)
    if not any(isinstance(mark, LocalPath) for mark in field.metadata):
        return value
    if isinstance(value, list):
        return [str(Path(each).expanduser().absolute()) for each in value]
    return str(Path(value).expanduser().absolute())


def _scope_ids() -> list[str]:
    return [scope.id for scope in current_config(state_home()).scopes]

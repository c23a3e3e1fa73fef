"""proof: evidence that was kept: take some, add some, look at it, and hand it on."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from computer_linker.cli.ask import answer_of
from computer_linker.cli.output import CliError, note, print_json, say, table
from computer_linker.cli.places import current_config, state_home

if TYPE_CHECKING:
    from computer_linker.artifacts.store import ArtifactStore, Asked
    from computer_linker.model.artifact import Artifact

_Json = Annotated[bool, typer.Option("--json", help="Answer as JSON.")]
_Scope = Annotated[str | None, typer.Option(help="Only this scope; for capture and attach, where to keep it.")]
_Owner = Annotated[str | None, typer.Option(help="A label: an issue, a pull request, a run.")]
_Session = Annotated[str | None, typer.Option(help="Only what this session left.")]
_Title = Annotated[str | None, typer.Option(help="What to call it.")]
_MAX_LISTED = 500


def register(app: typer.Typer) -> None:
    """Add `proof` and its commands."""
    group = typer.Typer(help="Evidence: what was seen and kept.", rich_markup_mode=None)
    app.add_typer(group, name="proof", no_args_is_help=True)
    for name, command in (
        *(("capture", _capture), ("attach", _attach), ("list", _list)),
        *(("show", _show), ("export", _export)),
    ):
        group.command(name)(command)


def _capture(
    target: Annotated[str, typer.Argument(help="A display, or with --window or --process one of those.")] = "primary",
    window: Annotated[bool, typer.Option("--window", help="The target is a window's id.")] = False,
    process: Annotated[bool, typer.Option("--process", help="The target is a process's id or name.")] = False,
    scope: _Scope = None,
    owner: _Owner = None,
    title: _Title = None,
    as_json: _Json = False,
) -> None:
    """Take a picture of the desktop and keep it, masked as every capture is."""
    source = "window" if window else "process" if process else "display"
    where = _only(scope, "computer", ("screen:capture", "artifact:write"))
    given = {"source": source, "owner": owner, "title": title}
    _told(_kept(where, "artifact.capture", target, given), as_json=as_json)


def _attach(
    file: Annotated[str, typer.Argument(help="A file inside a scope, or - for text on standard input.")],
    kind: Annotated[str | None, typer.Option(help="screenshot, console_logs, document, ...; else inferred.")] = None,
    scope: _Scope = None,
    owner: _Owner = None,
    title: _Title = None,
    as_json: _Json = False,
) -> None:
    """Keep a copy of a file, or of a text, as evidence."""
    given: dict[str, Any] = {"kind": kind, "owner": owner, "title": title}
    if file == "-":
        where, target = _only(scope, "folder", ("artifact:write",)), None
        given["text"] = sys.stdin.read()
    else:
        where, target = _inside(Path(file), scope)
    _told(_kept(where, "artifact.attach", target, given), as_json=as_json)


def _list(
    scope: _Scope = None,
    kind: Annotated[str | None, typer.Option(help="Only this kind.")] = None,
    owner: _Owner = None,
    session: _Session = None,
    limit: Annotated[int, typer.Option(min=1, max=_MAX_LISTED, help="How many at most.")] = 50,
    as_json: _Json = False,
) -> None:
    """List what is kept, the newest first."""
    from computer_linker.artifacts.kinds import normalised_kind

    asked = _asked(scope, owner, session, normalised_kind(kind) if kind is not None else None)
    with _store() as store:
        found = store.listed(asked, limit)
    if as_json:
        print_json({"artifacts": [_wire(one) for one in found]})
    elif not found:
        say("Nothing is kept.")
    else:
        rows = [(one.id, one.kind, f"{one.size}", one.scope, one.label, _plain(one.title)) for one in found]
        table(rows, ("artifact", "kind", "bytes", "scope", "label", "title"))


def _show(
    artifact: Annotated[str, typer.Argument(metavar="ARTIFACT", help="The artifact's id, or the beginning of it.")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write its bytes to this new file.")] = None,
    as_json: _Json = False,
) -> None:
    """Show one artifact: its facts, its text, or with --output its bytes in a file."""
    with _store() as store:
        one = _find(store, artifact)
        content = store.content(one)
    if output is not None:
        _write_new(output, content)
    if as_json:
        print_json({"artifact": _wire(one), **({} if output is None else {"file": str(output)})})
        return
    wire = _wire(one)
    owner = wire.pop("owner")
    for name, value in (wire | owner).items():
        note(f"{name}: {_plain(str(value))}")
    if output is not None:
        note(f"written to {output}")
    elif one.media_type in ("text/plain", "application/json"):
        text = content.decode("utf-8", "replace")
        sys.stdout.write("\n".join(map(_plain, text.split("\n"))) if sys.stdout.isatty() else text)


def _export(
    html: Annotated[Path | None, typer.Option(help="Write one self-contained page to this file.")] = None,
    folder: Annotated[Path | None, typer.Option(help="Write the files themselves to this new folder.")] = None,
    scope: _Scope = None,
    owner: _Owner = None,
    session: _Session = None,
    title: _Title = None,
    asked: Annotated[str, typer.Option(help="What was asked for, in your words; shown at the top.")] = "",
    as_json: _Json = False,
) -> None:
    """Hand evidence on: a page fit for a pull request, or the files. Without a choice, that of the latest session."""
    from computer_linker.cli.proof_export import files_of, page_of

    if (html is None) == (folder is None):
        raise CliError("say where to: --html FILE or --folder FOLDER", exit_code=2)
    with _store() as store:
        chosen = _asked(scope, owner, session, None)
        found = _chosen(store, chosen)
        if html is not None:
            told = page_of(store, found, html, title=title, asked=asked, whole_session=owner is None)
        else:
            assert folder is not None
            told = files_of(store, found, folder)
    print_json(told) if as_json else say(f"{_counted(told['pieces'])} in {told['file']}")


def _counted(pieces: int) -> str:
    return "1 piece of evidence" if pieces == 1 else f"{pieces} pieces of evidence"


def _chosen(store: "ArtifactStore", asked: "Asked") -> "list[Artifact]":
    """What is exported, oldest first: what was asked for, or the latest session's."""
    found = store.listed(asked, _MAX_LISTED)
    if not found:
        raise CliError("there is no such evidence", "computer-linker proof list shows what there is")
    if asked.session is None and asked.label is None:
        found = _latest(found)
    return found[::-1]


def _latest(found: "list[Artifact]") -> "list[Artifact]":
    """The latest client's session, with what was added to it by hand since; by hand each command is a session of its own."""
    session = next((one.session for one in found if not _is_by_hand(one)), None)
    if session is None:
        return found
    began = min(one.created_at for one in found if one.session == session)
    return [one for one in found if one.session == session or (_is_by_hand(one) and one.created_at >= began)]


def _is_by_hand(one: "Artifact") -> bool:
    return one.session.startswith("cli_")


def _asked(scope: str | None, owner: str | None, session: str | None, kind: str | None) -> "Asked":
    from computer_linker.artifacts.store import Asked

    return Asked(scope, kind, owner, session)


@contextmanager
def _store() -> "Iterator[ArtifactStore]":
    """The store of this state folder, to read; a running service goes on writing beside it."""
    from computer_linker.artifacts.store import ArtifactStore

    folder = state_home() / "artifacts"
    if not (folder / "artifacts.db").is_file():
        raise CliError("nothing is kept yet", "computer-linker proof capture, or proof attach FILE")
    store = ArtifactStore(folder, only_to_read=True)
    try:
        yield store
    finally:
        store.close()


def _find(store: "ArtifactStore", beginning: str) -> "Artifact":
    from computer_linker.artifacts.store import Asked

    fitting = [one for one in store.listed(Asked(), 1_000_000) if beginning and one.id.startswith(beginning)]
    if len(fitting) != 1:
        which = "no artifact" if not fitting else "more than one artifact"
        raise CliError(f"{which} begins with {beginning[:40]!r}", "computer-linker proof list shows them")
    return fitting[0]


def _inside(file: Path, scope: str | None) -> tuple[str, str]:
    """The scope a file lies in, and its path there. The service looks again; this only finds the words for it."""
    place = file.absolute()
    for one in current_config(state_home()).scopes:
        if one.type != "folder" or scope not in (None, one.id):
            continue
        for number, root in enumerate(one.roots):
            if place.is_relative_to(root) or place.resolve().is_relative_to(Path(root).resolve()):
                inner = place if place.is_relative_to(root) else place.resolve()
                below = inner.relative_to(root if place.is_relative_to(root) else Path(root).resolve())
                return one.id, f"@{number}/{below}" if len(one.roots) > 1 else str(below)
    raise CliError(f"{file} lies in no scope", "only files of a scope are kept: computer-linker scope list")


def _only(scope: str | None, kind: str, needs: tuple[str, ...]) -> str:
    if scope is not None:
        return scope
    scopes = current_config(state_home()).scopes
    fitting = [one.id for one in scopes if one.type == kind and set(needs) <= {c.value for c in one.granted}]
    if len(fitting) == 1:
        return fitting[0]
    if not fitting:
        of_kind = [one.id for one in scopes if one.type == kind]
        place = f"edit {of_kind[0]}" if of_kind else "add --computer" if kind == "computer" else "add FOLDER"
        wanted = " ".join(f"--allow {one}" for one in needs)
        raise CliError(f"no {kind} scope allows {' and '.join(needs)}", f"computer-linker scope {place} {wanted}")
    raise CliError("which scope?", f"--scope {' or '.join(fitting)}", 2)


def _kept(scope: str, op: str, target: str | None, given: dict[str, Any]) -> dict[str, Any]:
    request: dict[str, Any] = {"scope": scope, "op": op}
    request["input"] = {name: value for name, value in given.items() if value is not None}
    if target is not None:
        request["target"] = target
    artifact: dict[str, Any] = answer_of(request)["artifact"]
    return artifact


def _told(artifact: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json({"artifact": artifact})
    else:
        say(f"{artifact['id']}  {artifact['kind']}  {artifact['size']} bytes")


def _wire(one: "Artifact") -> dict[str, Any]:
    from computer_linker.operations.artifact.answer import facts

    wire: dict[str, Any] = facts(one).to_wire()
    return wire


def _plain(text: str) -> str:
    from computer_linker.policy.preview import escaped

    return escaped(text)


def _write_new(path: Path, content: bytes) -> None:
    try:
        with path.open("xb") as file:
            file.write(content)
    except FileExistsError:
        raise CliError(f"{path} is there already", "choose another file") from None
    except OSError as error:
        raise CliError(f"{path} cannot be written: {error.strerror}", "choose another file") from error

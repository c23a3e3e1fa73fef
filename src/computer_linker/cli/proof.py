"""proof: take, add, show and export evidence."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from computer_linker.cli.output import CliError, note, print_json, say
from computer_linker.cli.places import state_home

if TYPE_CHECKING:
    from computer_linker.artifacts.store import ArtifactStore, Filter
    from computer_linker.model.artifact import Artifact

_Json = Annotated[bool, typer.Option("--json", help="Answer as JSON.")]
_Scope = Annotated[str | None, typer.Option(help="Only this scope; for attach, where to keep it.")]
_Owner = Annotated[str | None, typer.Option(help="A label: an issue, a pull request, a run.")]
_Session = Annotated[str | None, typer.Option(help="Only what this session left.")]
_Title = Annotated[str | None, typer.Option(help="What to call it.")]
_MAX_LISTED = 500


def register(app: typer.Typer) -> None:
    """Add `proof`, with the commands that use local files: standard input, a file, a page."""
    group = typer.Typer(help="Evidence: what was seen and kept.", rich_markup_mode=None)
    app.add_typer(group, name="proof", no_args_is_help=True)
    for name, command in (("attach", _attach), ("show", _show), ("export", _export)):
        group.command(name)(command)


def _attach(
    file: Annotated[str, typer.Argument(help="A file inside a scope, or - for text on standard input.")],
    kind: Annotated[str | None, typer.Option(help="screenshot, console_logs, document, ...; else inferred.")] = None,
    scope: _Scope = None,
    owner: _Owner = None,
    title: _Title = None,
    as_json: _Json = False,
) -> None:
    """Keep a copy of a file, or of a text, as evidence."""
    from computer_linker.cli.owner import ask
    from computer_linker.operations.artifact.answer import KeptArtifact
    from computer_linker.owner.proof.attach import AttachInput, proof_attach

    text = sys.stdin.read() if file == "-" else None
    place = None if text is not None else str(Path(file).absolute())
    given = AttachInput(file=place, text=text, kind=kind, scope=scope, owner=owner, title=title)
    kept = ask(proof_attach, given, KeptArtifact)
    one = kept.artifact
    print_json(kept.to_wire()) if as_json else say(f"{one.id}  {one.kind}  {one.size} bytes")


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
        if value not in (None, {}, ""):
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
    from computer_linker.artifacts.store import Filter
    from computer_linker.cli.proof_export import files_of, page_of

    if (html is None) == (folder is None):
        raise CliError("say where to: --html FILE or --folder FOLDER", exit_code=2)
    with _store() as store:
        found = _chosen(store, Filter(scope, None, owner, session))
        if html is not None:
            exported = page_of(store, found, html, title=title, asked=asked, whole_session=owner is None)
        else:
            assert folder is not None
            exported = files_of(store, found, folder)
    print_json(exported) if as_json else say(f"{_counted(exported['pieces'])} in {exported['file']}")


def _counted(pieces: int) -> str:
    return "1 piece of evidence" if pieces == 1 else f"{pieces} pieces of evidence"


def _chosen(store: "ArtifactStore", asked: "Filter") -> "list[Artifact]":
    """What is exported, oldest first: what was asked for, or the latest session's."""
    found = store.listed(asked, _MAX_LISTED)
    if not found:
        raise CliError("there is no such evidence", "computer-linker proof list shows what there is")
    if asked.session is None and asked.label is None:
        found = _latest(found)
    return found[::-1]


def _latest(found: "list[Artifact]") -> "list[Artifact]":
    """The latest client's session, with what was added to it by hand since; each command by hand is its own session."""
    session = next((one.session for one in found if not _is_by_hand(one)), None)
    if session is None:
        return found
    began = min(one.created_at for one in found if one.session == session)
    return [one for one in found if one.session == session or (_is_by_hand(one) and one.created_at >= began)]


def _is_by_hand(one: "Artifact") -> bool:
    return one.session.startswith("cli_")


@contextmanager
def _store() -> "Iterator[ArtifactStore]":
    """Open the store of this state folder for reading; a running service may write to it meanwhile."""
    from computer_linker.artifacts.store import ArtifactStore
    from computer_linker.owner.proof.list import NOTHING_KEPT

    folder = state_home() / "artifacts"
    if not (folder / "artifacts.db").is_file():
        raise CliError("no evidence is kept yet", NOTHING_KEPT)
    store = ArtifactStore(folder, only_to_read=True)
    try:
        yield store
    finally:
        store.close()


def _find(store: "ArtifactStore", beginning: str) -> "Artifact":
    from computer_linker.artifacts.store import Filter

    fitting = [one for one in store.listed(Filter(), 1_000_000) if beginning and one.id.startswith(beginning)]
    if len(fitting) != 1:
        which = "no artifact" if not fitting else "more than one artifact"
        raise CliError(f"{which} begins with {beginning[:40]!r}", "computer-linker proof list shows them")
    return fitting[0]


def _wire(one: "Artifact") -> dict[str, Any]:
    from computer_linker.operations.artifact.answer import facts

    wire: dict[str, Any] = facts(one).to_wire()
    return wire


def _plain(text: str) -> str:
    from computer_linker.policy.visible_text import escaped

    return escaped(text)


def _write_new(path: Path, content: bytes) -> None:
    try:
        with path.open("xb") as file:
            file.write(content)
    except FileExistsError:
        raise CliError(f"{path} is there already", "choose another file") from None
    except OSError as error:
        raise CliError(f"{path} cannot be written: {error.strerror}", "choose another file") from error

"""code.diagnostics: what a language server finds wrong in a file, and what of it a change brought."""

from typing import Annotated, Any, Literal

from anyio.to_thread import run_sync
from pydantic import Field
from typing_extensions import TypedDict

from computer_linker.errors import InvalidRequest, NotFound, ProviderUnavailable
from computer_linker.model.paths import RootedPath
from computer_linker.operations.code.asking import Asking
from computer_linker.policy.paths import check_name, rules_of
from computer_linker.providers.held import guarded
from computer_linker.providers.language.pool import LanguageServers
from computer_linker.providers.language.problems import Compared, Problem, compared, is_new, key_of
from computer_linker.providers.language.server import MAX_FILE, Document, document_of
from computer_linker.providers.language.servers import kind_of
from computer_linker.providers.language.text import Lines, characters, position_from
from computer_linker.providers.language.tracked import Parts
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation, shapes
from computer_linker.undo.journal import LAST, Record, UndoJournal

_MAX_FILES = 50
_SEVERITIES = ("error", "warning", "information", "hint")
_MAX_MESSAGE = 300


class DiagnosticsOptions(Model):
    severity: Annotated[
        Literal["error", "warning", "information", "hint"], Field(description="The least that is listed.")
    ] = "warning"
    all: Annotated[bool, Field(description="Also what was there before your newest change of the file.")] = False
    max_results: Annotated[int, Field(gt=0, le=1000)] = 100


class DiagnosticEntry(TypedDict):
    path: str
    line: int
    column: int
    severity: str
    message: str
    code: str


class Diagnostics(Model):
    diagnostics: list[DiagnosticEntry]
    since: Annotated[
        str | None,
        Field(description="The operation whose change they are new since; null where they are all there are."),
    ]
    known: Annotated[int, Field(description="Further ones, which were there before that change.")]
    fixed: Annotated[int, Field(description="Those that this change removed.")]
    engine: str
    truncated: bool


@operation(
    "code.diagnostics",
    did="looked for problems in",
    needs={Capability.FS_READ},
    effect=Effect.OBSERVE,
    text=shapes.DIAGNOSTICS,
    examples=[
        Example("What your newest change broke.", {}, runs=False),
        Example("Everything wrong with a file.", {"target": "src/main.py", "options": {"all": True}}, runs=False),
    ],
)
async def code_diagnostics(
    ctx: Context, target: str | None = None, options: DiagnosticsOptions = DiagnosticsOptions()
) -> Diagnostics:
    """Report the problems of a file that are new since your newest change of it; all of them where you changed nothing.

    Without a target: of every file that your newest change in this scope touched.
    """
    record = _record(ctx, target)
    files = [guarded(ctx.path(target), ctx.services.home)] if target is not None else _touched(ctx, record)
    if target is not None:
        await ctx.computer.files.stat(files[0])
    before = {} if record is None or options.all else await run_sync(_before, ctx.use(UndoJournal), record)
    found: list[DiagnosticEntry] = []
    known = fixed = 0
    engines: list[str] = []
    for group in await _grouped(ctx, files):
        root = group[0].root
        earlier = {parts: one for (place, parts), one in before.items() if place == root}
        server = await ctx.use(LanguageServers).server(group[0])
        engines += [server.kind.name] if server.kind.name not in engines else []
        for path, one in zip(group, await compared(server, group, earlier if before else None), strict=True):
            new, old, gone = _new(one, options.severity)
            known, fixed = known + old, fixed + gone
            found += [_entry(path, one.document, problem) for problem in new]
    found.sort(key=lambda each: (_SEVERITIES.index(each["severity"]), each["path"], each["line"]))
    ctx.note(diagnostics=len(found), files=len(files))
    return Diagnostics(
        diagnostics=found[: options.max_results],
        since=record.operation_id if record is not None and before else None,
        known=known,
        fixed=fixed,
        engine=", ".join(engines),
        truncated=len(found) > options.max_results,
    )


async def diagnostics_now(asking: Asking) -> list[Problem]:
    """The problems of one file as it is."""
    return (await compared(asking.server, [asking.path]))[0].now


def _record(ctx: Context, target: str | None) -> Record | None:
    """The caller's newest change: of the target, or in this scope."""
    journal = ctx.use(UndoJournal)
    if target is None:
        try:
            return journal.find(LAST, ctx.scope.id, ctx.principal)
        except NotFound:
            raise InvalidRequest("You changed no file here yet; name a file as target.", field="target") from None
    try:
        return journal.find_change_of(ctx.path(target), ctx.scope.id, ctx.principal)
    except NotFound:
        return None


def _touched(ctx: Context, record: Record | None) -> list[RootedPath]:
    """The files that a change left behind, under the scope's present rules."""
    found: list[RootedPath] = []
    for step in [] if record is None else record.steps:
        root = step["root"]
        if root not in ctx.scope.roots or step["do"] not in ("restore", "remove", "move"):
            continue
        index = ctx.scope.roots.index(root)
        prefix = f"{ctx.scope.root_names[index]}:" if index or ctx.cwd else ""
        path = RootedPath(root, tuple(step["path"]), rules_of(ctx.scope, root, ctx.services.config), prefix)
        if kind_of(path.name) is not None and path not in found:
            check_name(path, for_writing=False)
            found.append(guarded(path, ctx.services.home))
    if len(found) > _MAX_FILES:
        ctx.warn(f"The change touched {len(found)} source files; the first {_MAX_FILES} were looked at.")
    return found[:_MAX_FILES]


async def _grouped(ctx: Context, files: list[RootedPath]) -> list[list[RootedPath]]:
    """Files that still exist by their server. Raises where there is a file and no server for any."""
    groups: dict[tuple[str, str], list[RootedPath]] = {}
    missing: list[str] = []
    for path in files:
        reason = ctx.use(LanguageServers).why_none(path)
        if reason is not None:
            missing += [reason] if reason not in missing else []
            continue
        try:
            await ctx.computer.files.stat(path)
        except NotFound:
            continue
        kind = kind_of(path.name)
        groups.setdefault((path.root, "" if kind is None else kind.name), []).append(path)
    if missing and not groups:
        kind = kind_of(files[0].name)
        raise ProviderUnavailable(missing[0], reason="missing", remedy=None if kind is None else kind.install)
    for reason in missing:
        ctx.warn(reason)
    return list(groups.values())


def _before(journal: UndoJournal, record: Record) -> dict[tuple[str, Parts], Document | None]:
    """The contents that a change replaced, as the undo journal keeps them; None for a file that it made. Blocking."""
    found: dict[tuple[str, Parts], Document | None] = {}
    for step in record.steps:
        key = (step["root"], tuple(step["path"]))
        if step["do"] == "remove":
            found[key] = None
        elif step["do"] == "restore" and "kept" in step:
            data = journal.kept.read(step["kept"], MAX_FILE)
            if data is not None and len(data) <= MAX_FILE:
                found[key] = document_of(key[1], data)
    return found


def _new(one: Compared, least: str) -> tuple[list[Problem], int, int]:
    """The problems that are new, and how many were known and are fixed, of this severity or worse."""
    most = _SEVERITIES.index(least) + 1
    now = [each for each in one.now if _severity(each) <= most]
    if one.then is None:
        return now, 0, 0
    left = [key_of(each) for each in one.then if _severity(each) <= most]
    new = [each for each in now if is_new(each, left)]
    return new, len(now) - len(new), len(left)


def _severity(problem: Problem) -> int:
    found = problem.get("severity")
    return found if isinstance(found, int) and 1 <= found <= len(_SEVERITIES) else 1


def _entry(path: RootedPath, document: Document, problem: Problem) -> DiagnosticEntry:
    span: Any = problem.get("range")
    at = position_from(span.get("start") if isinstance(span, dict) else None)
    code = problem.get("code")
    message = " ".join(str(problem.get("message", "")).split())
    return DiagnosticEntry(
        path=path.shown,
        line=at.line + 1,
        column=characters(Lines(document.text).line(at.line), at.character) + 1,
        severity=_SEVERITIES[_severity(problem) - 1],
        message=message if len(message) <= _MAX_MESSAGE else message[:_MAX_MESSAGE] + "…",
        code="" if code is None else str(code),
    )

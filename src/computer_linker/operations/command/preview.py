"""The approval preview of a command: the command line, its folder, and the files of the scope it names."""

import shlex
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Protocol

from computer_linker.approvals.request import Preview
from computer_linker.changes.fingerprints import Fingerprints
from computer_linker.changes.links import links_on
from computer_linker.errors import Conflict, InvalidRequest, LinkError
from computer_linker.model.network import shown_network
from computer_linker.operations.command.list import ListedProcess
from computer_linker.policy.command_line import to_argv
from computer_linker.policy.digest import digest_of_parts
from computer_linker.policy.visible_text import escaped
from computer_linker.providers.network.asking import Asking
from computer_linker.providers.packages.manifests import Source, with_arguments
from computer_linker.providers.packages.project import MANIFESTS, read_project
from computer_linker.providers.processes.named import MOST, has_unread_names, left_by_parents, named_in
from computer_linker.providers.processes.prepare import CommandRequest, Preparation
from computer_linker.providers.processes.records import Record
from computer_linker.providers.processes.request import request_of
from computer_linker.providers.processes.table import ProcessTable
from computer_linker.registry import Context

ONLY = "Only the files named here are held to what they are now; what they load in turn is not."
UNREAD = "Not checked: a name in this line that only the shell has is not held."
_INCLUDED = "Files that it includes and pattern rules are not shown."
_ELSEWHERE = "what it does over the network, in other folders, or by services cannot be taken back."
_AFTERWARDS = {
    "direct": f"`undo` takes back its changes of small folders; {_ELSEWHERE}",
    "view": f"Its changes of the folder are held on a view; {_ELSEWHERE}",
    "start": f"Nothing takes its changes back: it is started without `undo`. {_ELSEWHERE.capitalize()}",
    "ask": f"Its changes of the folder are held on a view until you keep them; {_ELSEWHERE}",
}


class _Command(Protocol):
    @property
    def command(self) -> str | list[str]: ...
    @property
    def env(self) -> dict[str, str]: ...


class _Script(Protocol):
    @property
    def script(self) -> str: ...
    @property
    def args(self) -> list[str]: ...
    @property
    def source(self) -> Source | None: ...
    @property
    def env(self) -> dict[str, str]: ...


async def show_command(ctx: Context, input: _Command, target: str = ".", options: object = None) -> Preview:
    """The scripts and programs of the scope that the command names, by digest."""
    about = await about_command(ctx, input.command, target, options=options)
    obstacle = await _obstacle(ctx, request_of(ctx, target, input.command, input.env))
    return replace(about, obstacle=obstacle or about.obstacle)


async def show_script(ctx: Context, input: _Script, target: str = ".", options: object = None) -> Preview:
    """The script's definition, and the manifests and files that determine it, by digest."""
    folder = ctx.path(target or ".")
    project = await read_project(ctx.computer, folder)
    script = project.script(input.script, input.source)
    argv = with_arguments(script, input.args)
    around = project.around(script)
    lines = [f"{each.source} says {each.name}: {each.command}" for each in around if each.command]
    named = [folder.child(name).shown for name in MANIFESTS]
    recipe = project.recipe(script)
    if recipe:
        lines += [f"{script.source} says:", *(f"  {line.expandtabs(4)}" for line in recipe), _INCLUDED]
    for text in [*(each.command for each in around if each.command), *recipe]:
        named += named_in(text.strip().lstrip("@-+ "), folder, ctx.scope.roots)
    about = await about_command(ctx, list(argv), target, tuple(named), options)
    return replace(
        about,
        lines=(*lines, *about.lines),
        holds={**about.holds, "script": digest_of_parts(*argv)},
        obstacle=await _obstacle(ctx, request_of(ctx, target, list(argv), input.env)) or about.obstacle,
    )


async def about_command(
    ctx: Context, command: str | list[str], target: str, more: tuple[str, ...] = (), options: object = None
) -> Preview:
    """A command line with the files of the scope that it names."""
    cwd = ctx.path(target or ".")
    left = left_by_parents(command, cwd, ctx.scope.roots)
    named = list(dict.fromkeys((*left, *more, *named_in(command, cwd, ctx.scope.roots))))
    prints = await named_files(ctx, named)
    text = command if isinstance(command, str) else shlex.join(command)
    lines = [f"$ {text}", f"in the folder {cwd.shown}, {await _confinement(ctx)}", *prints.lines]
    if len(named) > MOST:
        lines.append(f"Not checked beyond {MOST} names.")
    if has_unread_names(command):
        lines.append(UNREAD)
    lines.append(_afterwards(ctx, options))
    return Preview(
        (*lines, ONLY), prints.holds, argv=_words(command), paths=(cwd.shown,), obstacle=await misleading(ctx, left)
    )


def _afterwards(ctx: Context, options: object) -> str:
    """What becomes of its changes: by the scope's rule, or by what the call itself asks for."""
    outcome: str = ctx.scope.policy.outcome
    if outcome == "direct" and getattr(options, "view", False):
        outcome = "view"
    elif outcome == "direct" and ctx.op.endswith(".start") and not getattr(options, "undo", False):
        outcome = "start"
    return _AFTERWARDS[outcome]


async def named_files(ctx: Context, named: Sequence[str]) -> Fingerprints:
    """The present state of the files of the scope that a command names."""
    prints = Fingerprints(ctx.computer.files)
    for name in named[:MOST]:
        try:
            path = ctx.path_from_root(name)
            await prints.add_file(path, "names")
        except LinkError:
            # Not a path of this scope, or one that its commands cannot open either.
            continue
    return prints


async def misleading(ctx: Context, left: list[str]) -> LinkError | None:
    """The refusal of a `..` behind a link: it names another file than the one that people read there."""
    places = []
    for name in left:
        with suppress(LinkError):
            places.append(ctx.path_from_root(name))
    links = await links_on(ctx.computer.files, places)
    if not links:
        return None
    return InvalidRequest(
        f"{escaped(links[0])} is a symbolic link, so a `..` behind it leads elsewhere than it reads. Name the path without it."
    )


async def _obstacle(ctx: Context, request: CommandRequest) -> LinkError | None:
    """Why the scope's rules would refuse the command, or why it cannot be started; it is judged and not started."""
    try:
        await ctx.use(Preparation).judge(request)
    except LinkError as error:
        return error
    return None


async def _confinement(ctx: Context) -> str:
    """The boundary and the network of the scope's commands, for people."""
    boundary = await ctx.use(Preparation).boundary(ctx.scope)
    network = ctx.scope.policy.network
    reach = "with the network" if network is True else "without the network"
    if network and network is not True and boundary.kind == "bubblewrap":
        opened = [one.entry for one in ctx.use(Asking).open_hosts() if one.scope == ctx.scope.id]
        reach = f"with the network: {shown_network([*network, *opened])}"
    if not boundary.holds:
        return "with no kernel boundary: it can reach all your files and the network"
    return f"held by {boundary.named(network_cut=network is not True)}; {reach}"


def _words(command: str | list[str]) -> tuple[str, ...]:
    """The program and its arguments; of a shell's line only the whole text, which no other begins with."""
    try:
        return tuple(to_argv(command))
    except InvalidRequest:
        return (command,) if isinstance(command, str) else tuple(command)


# The approval preview of an act on a running process: its program and what it printed last, because a handle means
# nothing.

_MAX_BYTES, _MAX_LINES = 4096, 10


async def show_process(ctx: Context, target: str, input: object = None, options: object = None) -> Preview:
    """The process, or the agent's session. The approval is bound to it while it runs."""
    from computer_linker.operations.command.sessions import listed_session, session_of

    session = session_of(ctx, target)
    known: ListedProcess | Record
    printed: list[str] = []
    if session is not None:
        known = listed_session(session)
    else:
        managed = ctx.use(ProcessTable).find(target, ctx.principal, ctx.scope.id)
        known = managed.record
        printed = managed.printed(max(0, managed.end - _MAX_BYTES), _MAX_BYTES).decode("utf-8", "replace").splitlines()
    lines = [
        f"the process `{known.command_preview}`, {known.status}, started {known.started_at}, held by {known.boundary}"
    ]
    lines += ["its last output:", *(f"| {line}" for line in printed[-_MAX_LINES:])] if printed else []
    return Preview(tuple(lines), {"process": digest_of_parts(target, known.status, known.started_at)})


async def show_typed(ctx: Context, target: str, input: object = None, options: object = None) -> Preview:
    """The process that would be typed into. Refused where it takes no more input."""
    about = await show_process(ctx, target)
    # What is typed answers what the process printed last.
    about = replace(about, holds={**about.holds, "its last output": digest_of_parts(*about.lines)})
    try:
        ctx.use(ProcessTable).find(target, ctx.principal, ctx.scope.id).check_input()
    except Conflict as error:
        return replace(about, obstacle=error)
    return about

"""code.context: the first look at a workspace, in one bounded call."""

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from computer_linker.errors import LinkError
from computer_linker.model.paths import RootedPath
from computer_linker.policy.engine import holds
from computer_linker.providers.git.run import Git
from computer_linker.providers.git.status import Status, status
from computer_linker.providers.held import guarded, hold_folder
from computer_linker.providers.overview import Instruction, Skill, config_files, instructions, languages, skills
from computer_linker.providers.packages.project import Project, read_project
from computer_linker.providers.search.engine import Search
from computer_linker.providers.search.query import Breadth, NameQuery
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation, shapes

_MAX_FILES_COUNTED = 20_000
_TREE_DEPTH = 3
_TELLING_SCRIPTS = ("test", "lint", "build")
_NOT_CODE = frozenset({"markdown", "restructuredtext", "json", "yaml", "toml", "html", "css"})


class ContextOptions(Model):
    max_entries: Annotated[int, Field(gt=0, le=2000, description="Names in the tree.")] = 200
    max_bytes: Annotated[
        int, Field(ge=2000, le=200_000, description="About how much text to answer; the most useful comes first.")
    ] = 24_000


class LanguageCount(TypedDict):
    language: str
    files: int


class ScriptEntry(TypedDict):
    name: str
    source: str
    manager: str


class Overview(Model):
    languages: list[LanguageCount]
    files: int
    package_manager: str | None
    scripts: list[ScriptEntry]
    config_files: list[str]


class InstructionEntry(TypedDict):
    path: str
    content: str
    truncated: bool


class SkillEntry(TypedDict):
    name: str
    description: str
    path: str


class ChangeEntry(TypedDict):
    path: str
    index: str
    worktree: str


class Changes(Model):
    branch: str | None
    ahead: int | None
    behind: int | None
    clean: bool
    changed: int
    entries: list[ChangeEntry]


class NextOperation(TypedDict):
    op: str
    target: str
    input: dict[str, str]
    why: str


class CodeContext(Model):
    overview: Overview
    instructions: Annotated[
        list[InstructionEntry], Field(description="AGENTS.md and CLAUDE.md from the root to the target.")
    ]
    skills: list[SkillEntry]
    changes: Annotated[Changes | None, Field(description="None outside a git repository.")]
    tree: Annotated[list[str], Field(description="Paths to three levels; folders end with a slash.")]
    next_operations: Annotated[
        list[NextOperation], Field(description="What is worth asking next, of the operations this caller may use here.")
    ]
    truncated: Annotated[bool, Field(description="True when something was left out to stay within the limits.")]


class _Room:
    """The remaining bytes; pieces that do not fit are left out and counted."""

    def __init__(self, size: int) -> None:
        self.left = size
        self.is_short = False

    def fits(self, *texts: str) -> bool:
        size = sum(len(text) + 20 for text in texts)
        if size > self.left:
            self.is_short = True
            return False
        self.left -= size
        return True


@operation(
    "code.context",
    did="looked at the project",
    needs={Capability.FS_READ},
    effect=Effect.OBSERVE,
    text=shapes.CONTEXT,
    examples=[Example("Look around before coding.", {"target": "."})],
)
async def code_context(ctx: Context, target: str = ".", options: ContextOptions = ContextOptions()) -> CodeContext:
    """Give languages, scripts, configuration, instruction files, skills, changes and the tree of a workspace at once."""
    folder = guarded(ctx.path(target), ctx.services.home)
    room = _Room(options.max_bytes)
    overview = await _overview(ctx, folder, room)
    files = await instructions(ctx.computer.files, folder, int(room.left * 0.6))
    texts = [_instruction(one, room) for one in files]
    changes = _changes(await _status(ctx, folder), room)
    found = [
        _skill_entry(skill)
        for skill in await _skills(ctx, folder)
        if room.fits(skill.name, skill.description, skill.path)
    ]
    tree = await _tree(ctx, folder, options.max_entries, room)
    ctx.note(files=overview.files, instructions=len(texts), tree=len(tree))
    return CodeContext(
        overview=overview,
        instructions=texts,
        skills=found,
        changes=changes,
        tree=tree,
        next_operations=_next(ctx, target, overview, changes, tree),
        truncated=room.is_short,
    )


def _next(
    ctx: Context, target: str, overview: Overview, changes: Changes | None, tree: list[str]
) -> list[NextOperation]:
    """Suggested operations, as requests that can be sent as they are."""

    def may(capability: Capability) -> bool:
        return holds(ctx.principal, ctx.scope, capability)

    found: list[NextOperation] = []
    if changes is not None and not changes.clean and may(Capability.GIT_READ):
        found.append(
            NextOperation(op="git.diff", target=target, input={}, why=f"{changes.changed} files have changed.")
        )
    readme = next((path for path in tree if path.rpartition("/")[2].lower().startswith("readme")), None)
    if readme is not None:
        found.append(NextOperation(op="file.read", target=readme, input={}, why="It introduces the project."))
    if may(Capability.PACKAGE_RUN) or may(Capability.COMMAND_RUN):
        names = [script["name"] for script in overview.scripts]
        found += [
            NextOperation(
                op="package.run", target=target, input={"script": name}, why=f"The project's own {name} script."
            )
            for name in _TELLING_SCRIPTS
            if name in names
        ]
    if any(language["language"] not in _NOT_CODE for language in overview.languages) and may(Capability.SEARCH_READ):
        found.append(
            NextOperation(op="code.search_symbols", target=target, input={"query": "main"}, why="Find where it starts.")
        )
    return found


async def _overview(ctx: Context, folder: RootedPath, room: _Room) -> Overview:
    async with hold_folder(folder) as place:
        page = await ctx.use(Search).names(place, NameQuery(Breadth(include_hidden=False)), None, _MAX_FILES_COUNTED)
    room.is_short = page.next_position is not None
    project = await _project(ctx, folder)
    scripts = [
        ScriptEntry(name=script.name, source=script.source, manager=script.manager)
        for script in project.scripts[:60]
        if room.fits(script.name, script.source, script.manager)
    ]
    return Overview(
        languages=[LanguageCount(language=name, files=count) for name, count in languages(page.paths)],
        files=len(page.paths),
        package_manager=project.manager,
        scripts=scripts,
        config_files=[path for path in config_files(page.paths) if room.fits(path)],
    )


async def _project(ctx: Context, folder: RootedPath) -> Project:
    try:
        return await read_project(ctx.computer, folder)
    except LinkError:
        return Project(None, ())


async def _status(ctx: Context, folder: RootedPath) -> Status | None:
    try:
        return await ctx.use(Git).within(folder, status)
    except LinkError:
        return None


async def _skills(ctx: Context, folder: RootedPath) -> list[Skill]:
    root = RootedPath(folder.root, (), folder.rules, folder.prefix)
    places = [folder] if folder.parts == () else [root, folder]
    return [skill for place in places for skill in await skills(ctx.computer.files, place)]


async def _tree(ctx: Context, folder: RootedPath, max_entries: int, room: _Room) -> list[str]:
    found = await ctx.computer.files.tree(folder, max_depth=_TREE_DEPTH, max_entries=max_entries, gitignore=True)
    room.is_short = room.is_short or found.is_truncated
    names = [entry["path"] + ("/" if entry["type"] == "directory" else "") for entry in found.entries]
    return [name for name in names if room.fits(name)]


def _changes(found: Status | None, room: _Room) -> Changes | None:
    if found is None:
        return None
    entries = [
        ChangeEntry(path=entry.path, index=entry.index, worktree=entry.worktree)
        for entry in found.entries[:50]
        if room.fits(entry.path)
    ]
    room.is_short = room.is_short or len(entries) < len(found.entries)
    return Changes(
        branch=found.branch,
        ahead=found.ahead,
        behind=found.behind,
        clean=not found.entries,
        changed=len(found.entries),
        entries=entries,
    )


def _instruction(one: Instruction, room: _Room) -> InstructionEntry:
    room.left -= len(one.content) + len(one.path)
    room.is_short = room.is_short or one.is_cut
    return InstructionEntry(path=one.path, content=one.content, truncated=one.is_cut)


def _skill_entry(skill: Skill) -> SkillEntry:
    return SkillEntry(name=skill.name, description=skill.description, path=skill.path)

"""One project folder inside a scope: which manifests it has itself, and the scripts in them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from computer_linker.computer.base import Computer
from computer_linker.errors import InvalidRequest, LinkError, NotFound
from computer_linker.model.paths import RootedPath
from computer_linker.providers.packages.manifests import (
    SOURCES,
    Script,
    Source,
    node_manager,
    python_manager,
    scripts_of,
)
from computer_linker.providers.packages.recipes import recipe_lines

_MAX_MANIFEST = 2_000_000
_LOCKS = (
    "pnpm-lock.yaml", "yarn.lock", "bun.lockb", "bun.lock", "package-lock.json", "npm-shrinkwrap.json", "uv.lock",
    "poetry.lock", "pdm.lock",
)  # fmt: skip
_OTHER_NAMES: dict[Source, tuple[str, ...]] = {
    "Makefile": ("GNUmakefile", "makefile", "Makefile"),
    "justfile": ("justfile", "Justfile", ".justfile"),
}
MANIFESTS = (*(name for source in SOURCES for name in _OTHER_NAMES.get(source, (source,))), *_LOCKS)
"""Every file that defines scripts or selects their manager."""


@dataclass(frozen=True, slots=True)
class Project:
    """The scripts of one folder. A manifest above it is never used, inside the scope or outside."""

    manager: str | None
    scripts: tuple[Script, ...]
    texts: Mapping[Source, str] = field(default_factory=dict)

    def script(self, name: str, source: Source | None) -> Script:
        """The script of exactly this name. Raises InvalidRequest when no manifest defines it."""
        for script in self.scripts:
            if script.name == name and source in (None, script.source):
                return script
        raise InvalidRequest(
            f"No manifest in this folder defines a script {name[:80]!r}. package.list shows what there is.",
            scripts=[script.name for script in self.scripts][:50],
        )

    def around(self, script: Script) -> list[Script]:
        """The script with its manager's pre and post scripts, in order of execution."""
        names = [script.name]
        if script.source == "package.json":
            names = [f"pre{script.name}", script.name, f"post{script.name}"]
        by_name = {each.name: each for each in self.scripts if each.source == script.source}
        return [by_name[name] for name in names if name in by_name]

    def recipe(self, script: Script) -> tuple[str, ...]:
        """The lines of a Makefile or justfile that say what the script runs; empty for other manifests."""
        return recipe_lines(script.source, self.texts.get(script.source, ""), script.name)


async def read_project(computer: Computer, folder: RootedPath) -> Project:
    """Read the folder's own manifests. Raises NotFound when it has none."""
    names = frozenset([lock for lock in _LOCKS if await _exists(computer, folder.child(lock))])
    scripts: list[Script] = []
    managers: list[str] = []
    texts: dict[Source, str] = {}
    for source in SOURCES:
        text = await _manifest(computer, folder, source)
        if text is None:
            continue
        texts[source], manager = text, _manager(source, names, text)
        managers.append(manager)
        scripts += scripts_of(source, text, manager)
    if not managers:
        raise NotFound(f"{folder.shown} has no package.json, pyproject.toml, Makefile or justfile.", path=folder.shown)
    return Project(managers[0], tuple(scripts), texts)


def _manager(source: Source, names: frozenset[str], text: str) -> str:
    match source:
        case "package.json":
            return node_manager(names, text)
        case "pyproject.toml":
            return python_manager(names)
        case "Makefile":
            return "make"
        case "justfile":
            return "just"


async def _manifest(computer: Computer, folder: RootedPath, source: Source) -> str | None:
    for name in _OTHER_NAMES.get(source, (source,)):
        try:
            data, _ = await computer.files.read_whole(folder.child(name), _MAX_MANIFEST)
        except NotFound:
            continue
        return data.decode("utf-8", errors="replace")
    return None


async def _exists(computer: Computer, path: RootedPath) -> bool:
    try:
        await computer.files.stat(path)
    except LinkError:
        return False
    return True

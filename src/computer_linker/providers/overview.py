"""What code.context shows of a workspace: instruction files, skills, languages and configuration files."""

import re
from collections import Counter
from dataclasses import dataclass

from computer_linker.computer.facets.files import Files, Window
from computer_linker.errors import LinkError
from computer_linker.model.paths import RootedPath
from computer_linker.providers.symbols.languages import language_of

INSTRUCTION_NAMES = ("AGENTS.md", "CLAUDE.md")
SKILL_FOLDERS = ((".codex", "skills"), (".claude", "skills"), ("skills",))
_MAX_SKILLS = 100
_SKILL_HEAD = 4096


@dataclass(frozen=True, slots=True)
class Instruction:
    path: str
    content: str
    is_cut: bool


@dataclass(frozen=True, slots=True)
class Skill:
    name: str
    description: str
    path: str


async def instructions(files: Files, target: RootedPath, room: int) -> list[Instruction]:
    """The texts of AGENTS.md and CLAUDE.md, from the scope's root to the target; the outer ones first."""
    found: list[Instruction] = []
    for depth in range(len(target.parts) + 1):
        folder = RootedPath(target.root, target.parts[:depth], target.rules, target.prefix)
        for name in INSTRUCTION_NAMES:
            if room <= 0:
                return found
            text, is_cut = await _text(files, folder.child(name), room)
            if text is not None:
                found.append(Instruction(folder.child(name).shown, text, is_cut))
                room -= len(text)
    return found


async def skills(files: Files, folder: RootedPath) -> list[Skill]:
    """The skills below a folder, from the front matter of each SKILL.md."""
    found: list[Skill] = []
    for names in SKILL_FOLDERS:
        place = folder.child(*names)
        try:
            listing = await files.list_folder(place, max_results=_MAX_SKILLS)
        except LinkError:
            continue
        for entry in listing.entries:
            if entry["type"] != "directory":
                continue
            path = place.child(entry["name"], "SKILL.md")
            text, _ = await _text(files, path, _SKILL_HEAD)
            if text is not None:
                found.append(_skill(entry["name"], text, path.shown))
    return found[:_MAX_SKILLS]


async def _text(files: Files, path: RootedPath, room: int) -> tuple[str | None, bool]:
    """The start of a text file; None when it is missing or resolves outside the scope."""
    try:
        piece = await files.read(path, Window(max_bytes=room))
    except LinkError:
        return None, False
    return piece.content.decode("utf-8", "replace"), piece.next_byte is not None or len(piece.content) < piece.size


def _skill(folder: str, text: str, path: str) -> Skill:
    head = re.match(r"---\r?\n(.*?)\r?\n---", text, re.DOTALL)
    fields = dict(
        line.split(":", 1) for line in (head[1].splitlines() if head else []) if re.match(r"[A-Za-z-]+:", line)
    )
    name = fields.get("name", folder).strip().strip("\"'")
    return Skill(name[:100], fields.get("description", "").strip().strip("\"'")[:300], path)


_OTHER = {
    ".md": "markdown", ".rst": "restructuredtext", ".json": "json", ".yaml": "yaml", ".yml": "yaml", ".toml":
    "toml", ".html": "html", ".css": "css", ".scss": "css", ".sql": "sql", ".vue": "vue", ".svelte": "svelte",
    ".dart": "dart", ".ex": "elixir", ".exs": "elixir", ".hs": "haskell", ".clj": "clojure", ".r": "r", ".jl":
    "julia", ".zig": "zig", ".tf": "terraform", ".proto": "protobuf", ".ipynb": "notebook", ".m":
    "objective-c", ".pl": "perl",
}  # fmt: skip

CONFIG_NAMES = frozenset(
    """
    package.json pnpm-workspace.yaml tsconfig.json jsconfig.json vite.config.ts vite.config.js
    webpack.config.js next.config.js eslint.config.js .eslintrc.json .prettierrc pyproject.toml setup.py
    setup.cfg requirements.txt tox.ini pytest.ini mypy.ini ruff.toml uv.lock poetry.lock Pipfile Cargo.toml
    go.mod go.work pom.xml build.gradle build.gradle.kts settings.gradle CMakeLists.txt Makefile meson.build
    justfile Taskfile.yml Gemfile Rakefile composer.json Package.swift build.sbt mix.exs Dockerfile
    docker-compose.yml compose.yaml .editorconfig .pre-commit-config.yaml .gitlab-ci.yml Jenkinsfile
    turbo.json nx.json lerna.json deno.json bunfig.toml
    """.split()
)


def languages(paths: list[bytes]) -> list[tuple[str, int]]:
    """Languages with their file counts, the most frequent first."""
    counts: Counter[str] = Counter()
    for raw in paths:
        path = raw.decode("utf-8", "replace")
        language = language_of(path)
        dot = path.rfind(".")
        name = language.name if language is not None else _OTHER.get(path[dot:].lower()) if dot >= 0 else None
        if name is not None:
            counts[name] += 1
    return counts.most_common(12)


def config_files(paths: list[bytes]) -> list[str]:
    """Known configuration files at the top and one folder below."""
    shown = [path.decode("utf-8", "replace") for path in paths if path.count(b"/") <= 1]
    return sorted(
        (path for path in shown if path.rsplit("/", 1)[-1] in CONFIG_NAMES), key=lambda path: (path.count("/"), path)
    )[:50]

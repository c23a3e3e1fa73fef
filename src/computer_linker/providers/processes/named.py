"""The files inside a scope that a command names: its script, its program, the file its tool reads by itself."""

import posixpath
import re
from collections.abc import Iterator, Sequence

from computer_linker.model.paths import RootedPath
from computer_linker.policy.command_line import ShellNeeded, to_argv

MOST = 256
"""The most names examined in one command."""

_MAKE = ("GNUmakefile", "makefile", "Makefile")
_JUST = ("justfile", "Justfile", ".justfile")
_NODE = ("package.json", "package-lock.json", "pnpm-lock.yaml", "yarn.lock", "bun.lock", "bun.lockb", ".npmrc")
_PYTEST = ("conftest.py", "pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
_COMPOSE = ("compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml", "Dockerfile")
_GRADLE = ("build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts", "gradle.properties")
_READ_BY_ITSELF: dict[str, tuple[str, ...]] = {
    "make": _MAKE, "gmake": _MAKE, "just": _JUST, "npm": _NODE, "npx": _NODE, "pnpm": _NODE, "yarn": _NODE, "bun": _NODE,
    "node": ("package.json", "index.js"), "deno": ("deno.json", "deno.jsonc"), "pytest": _PYTEST, "py.test": _PYTEST,
    "tox": ("tox.ini", "pyproject.toml", "setup.cfg"), "nox": ("noxfile.py",), "uv": ("pyproject.toml", "uv.lock"),
    "poetry": ("pyproject.toml", "poetry.lock"), "pdm": ("pyproject.toml", "pdm.lock"), "hatch": ("pyproject.toml",),
    "pip": ("setup.py", "pyproject.toml", "setup.cfg"), "cargo": ("Cargo.toml", "Cargo.lock", "build.rs"),
    "go": ("go.mod", "go.sum"), "ninja": ("build.ninja",), "cmake": ("CMakeLists.txt", "CMakePresets.json"),
    "meson": ("meson.build",), "rake": ("Rakefile",),
    "bundle": ("Gemfile", "Gemfile.lock"), "mvn": ("pom.xml",), "gradle": _GRADLE, "gradlew": _GRADLE,
    "docker": _COMPOSE, "docker-compose": _COMPOSE, "podman": _COMPOSE, "task": ("Taskfile.yml", "Taskfile.yaml"),
    "invoke": ("tasks.py",), "ansible-playbook": ("ansible.cfg",), "terraform": ("main.tf",), "snakemake": ("Snakefile",),
    "python": ("__main__.py",), "eslint": ("eslint.config.js", "eslint.config.mjs", "package.json"), "tsc": ("tsconfig.json",),
    "jest": ("jest.config.js", "package.json"), "vitest": ("vitest.config.ts", "vite.config.ts", "package.json"),
}  # fmt: skip
"""Files that a program reads from its working folder without being named; also when they are created only later."""

_TOKEN = re.compile(r"[\w@%+:,./~-]+")
_TO_MODULE = re.compile(r"-[A-Za-z]*m")
_JOINED_MODULE = re.compile(r"-[A-Za-ln-z]*m([A-Za-z_][\w.]*)")
_MOST_LETTERS = 4
"""The most one-letter options combined in front of a joined value, as in `-xzffile`."""


def named_in(command: str | Sequence[str], cwd: RootedPath, roots: Sequence[str]) -> list[str]:
    """The targets inside the scope that a command names or may name, existing or not."""
    tokens, program = _tokens(command)
    found = (_target(token, cwd, roots) for token in _spread(tokens, _READ_BY_ITSELF.get(program, ())))
    return list(dict.fromkeys(target for target in found if target))


def _tokens(command: str | Sequence[str]) -> tuple[list[str], str]:
    """The arguments of a command and its program's name. For shell text every token counts."""
    try:
        argv = to_argv(command if isinstance(command, str) else list(command))
    except ShellNeeded:
        argv = ["sh", "-c", str(command)]
    program = re.sub(r"[\d.]+$", "", argv[0].rpartition("/")[2]) or argv[0]
    tokens = list(argv)
    if program in ("sh", "bash", "zsh", "dash", "ksh", "fish", "env", "xargs", "timeout", "nice", "nohup", "time"):
        inner = [
            token for part in argv[1:] for token in (_TOKEN.findall(part) if " " in part or ";" in part else [part])
        ]
        tokens += inner
        program = next((token for token in inner if token in _READ_BY_ITSELF), program)
    return tokens, program


def _spread(tokens: list[str], own: tuple[str, ...]) -> Iterator[str]:
    """Each token as a path, the value of an option, a module, and the files its tool finds by itself."""
    yield from own
    entered = [tokens[place] for place in range(1, len(tokens)) if tokens[place - 1] == "cd"]
    for place, token in enumerate(tokens):
        if place and _TO_MODULE.fullmatch(tokens[place - 1]):
            yield from _module(token)
            continue
        if not place and "/" not in token:
            continue
        for value in _values(token) if place else (token,):
            yield value
            yield from (f"{folder}/{value}" for folder in entered if not value.startswith("/"))
            if place and own:
                yield from (f"{value}/{name}" for name in own)
        if (joined := _JOINED_MODULE.fullmatch(token)) is not None:
            yield from _module(joined[1])


def _values(token: str) -> Iterator[str]:
    """What a token may name: itself, or the value of an option, after `=` or joined to letters as in `-fother.mk`."""
    if not token.startswith("-"):
        yield token
    elif "=" in token or token.startswith("--"):
        yield token.partition("=")[2]
    else:
        yield from (token[at:] for at in range(2, min(len(token), 2 + _MOST_LETTERS)))


def _module(name: str) -> Iterator[str]:
    place = name.replace(".", "/")
    yield from (f"{place}.py", f"{place}/__main__.py", f"{place}/__init__.py")


def _target(token: str, cwd: RootedPath, roots: Sequence[str]) -> str:
    """A token as a target of this scope; empty for one that is no path in it."""
    if not token or len(token) > 1000 or "\0" in token or "://" in token or token.startswith("~"):
        return ""
    # Without a root's name in front, a colon in the token could be read as the end of one.
    prefix, joined = cwd.prefix or "./", "/".join((*cwd.parts, token))
    if token.startswith("/"):
        index = next((place for place, root in enumerate(roots) if token.startswith(root.rstrip("/") + "/")), None)
        if index is None:
            return ""
        prefix, joined = f"@{index}/" if index else "./", token[len(roots[index].rstrip("/")) + 1 :]
    normal = posixpath.normpath(joined)
    return "" if normal in (".", "..") or normal.startswith("../") else prefix + normal

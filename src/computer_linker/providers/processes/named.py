"""The files inside a scope that a command names: its script, its program, the file its tool reads by itself."""

import posixpath
import re
from collections.abc import Iterator, Sequence

from computer_linker.errors import InvalidRequest
from computer_linker.model.paths import RootedPath
from computer_linker.policy.command_line import ShellNeeded, to_argv
from computer_linker.policy.shell_line import Reading, read_line

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

_ENDINGS = {"node": (".js", ".json", ".node"), "bun": (".ts", ".tsx", ".js", ".jsx", ".mjs", ".cjs", ".json")}
"""What a program adds to the name of a script that does not exist as it is written."""
_SHELLS = frozenset("sh bash zsh dash ksh fish env xargs timeout nice nohup time".split())
_OF_A_PROCESS = re.compile(r"/proc/(?:self|thread-self|\d+)(?:/task/\d+)?/(cwd|root)(?=/|$)")
_PATH_MAX = 4096
"""The kernel opens no longer path."""
_TOKEN = re.compile(r"[\w@%+:,./~-]+")
_TO_MODULE = re.compile(r"-[A-Za-z]*m")
_JOINED_MODULE = re.compile(r"-[A-Za-ln-z]*m([A-Za-z_][\w.]*)")
_MOST_LETTERS = 4
"""The most one-letter options combined in front of a joined value, as in `-xzffile`."""


def named_in(command: str | Sequence[str], cwd: RootedPath, roots: Sequence[str]) -> list[str]:
    """The targets inside the scope that a command names or may name, existing or not."""
    tokens, program = _tokens(command)
    found = (target for token in _spread(tokens, program) for target in _targets(token, cwd, roots))
    return list(dict.fromkeys(found))


def left_by_parents(command: str | Sequence[str], cwd: RootedPath, roots: Sequence[str]) -> list[str]:
    """The targets that a `..` in the command leads out of: `sub/deep` of `sub/deep/../x.py`, which may be a link elsewhere."""
    tokens, _ = _tokens(command)
    left = (
        "/".join(parts[:at])
        for token in tokens
        for parts in [token.rpartition("=")[2].split("/")]
        for at in range(1, len(parts))
        if parts[at] == ".." and parts[at - 1] not in ("", ".", "..")
    )
    return list(dict.fromkeys(target for token in left for target in _targets(token, cwd, roots)))


def has_unread_names(command: str | Sequence[str]) -> bool:
    """Whether a shell's text has tokens that only the running shell has: `$F.py`, `b*.py`."""
    argv, program = _argv(command)
    readings = [_reading(part) for part in argv[1:] if program in _SHELLS and _is_text(part)]
    return any(
        one is None or one.problem or any(not isinstance(word, str) for each in one.commands for word in each)
        for one in readings
    )


def _argv(command: str | Sequence[str]) -> tuple[list[str], str]:
    """The arguments of a command, and its program's name."""
    try:
        argv = to_argv(command if isinstance(command, str) else list(command))
    except ShellNeeded:
        argv = ["sh", "-c", str(command)]
    return argv, re.sub(r"[\d.]+$", "", argv[0].rpartition("/")[2]) or argv[0]


def _tokens(command: str | Sequence[str]) -> tuple[list[str], str]:
    """The arguments of a command and its program's name. For shell text every token counts."""
    argv, program = _argv(command)
    tokens = list(argv)
    if program in _SHELLS:
        inner = [token for part in argv[1:] for token in (_shell_words(part) if _is_text(part) else [part])]
        tokens += inner
        program = next((token for token in inner if token in _READ_BY_ITSELF), program)
    return tokens, program


def _is_text(part: str) -> bool:
    """Whether an argument of a shell may be a text of several tokens."""
    return " " in part or ";" in part


def _shell_words(text: str) -> list[str]:
    """Every token of a shell's text, also as the programs in it get them."""
    reading = _reading(text)
    read = [word for each in reading.commands for word in each] if reading is not None else []
    return [*_TOKEN.findall(text), *(word for word in read if isinstance(word, str))]


def _reading(text: str) -> Reading | None:
    try:
        return read_line(text)
    except InvalidRequest:
        return None


def _spread(tokens: list[str], program: str) -> Iterator[str]:
    """Each token as a path, the value of an option, a module, and the files its tool finds by itself."""
    own, endings = _READ_BY_ITSELF.get(program, ()), _ENDINGS.get(program, ())
    yield from own
    entered = [tokens[place] for place in range(1, len(tokens)) if tokens[place - 1] in ("cd", "pushd")]
    for place, token in enumerate(tokens):
        if place and _TO_MODULE.fullmatch(tokens[place - 1]):
            yield from _module(token)
            continue
        if not place and "/" not in token:
            continue
        for value in _values(token) if place else (token,):
            yield value
            yield from (f"{folder}/{value}" for folder in entered if not value.startswith("/"))
            if place:
                yield from (f"{value}/{name}" for name in own)
                yield from (f"{value}{ending}" for ending in endings)
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


def _targets(token: str, cwd: RootedPath, roots: Sequence[str]) -> Iterator[str]:
    """A token as targets of this scope; none for one that is no path in it."""
    if not token or len(token) > _PATH_MAX or "\0" in token or "://" in token or token.startswith("~"):
        return
    here = posixpath.join(cwd.root, *cwd.parts)
    full = posixpath.join(here, token)
    # `..` is read before and after the folder of a process is put in: /proc/self/cwd/.., /proc/self/task/../cwd.
    for spelt in dict.fromkeys((full, _normal(full))):
        place = _normal(_OF_A_PROCESS.sub(lambda found: here if found[1] == "cwd" else "", spelt))
        if target := _in_roots(place, cwd, roots):
            yield target


def _normal(path: str) -> str:
    """The path without `.`, `..` and doubled slashes, also at its start, where they would have a meaning of their own."""
    return "/" + posixpath.normpath(path).lstrip("/")


def _in_roots(place: str, cwd: RootedPath, roots: Sequence[str]) -> str:
    for index, root in sorted(enumerate(roots), key=lambda one: one[1] != cwd.root):
        above = posixpath.normpath(root).rstrip("/") + "/"
        if place.startswith(above):
            # With a root's name or `./` in front: a colon in the token could else be read as the end of one.
            prefix = cwd.prefix if root == cwd.root else f"@{index}/" if index else ""
            return (prefix or "./") + place.removeprefix(above)
    return ""

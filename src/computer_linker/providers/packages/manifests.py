"""Reads the scripts a project's manifests define. Nothing in a manifest is executed here."""

import json
import re
import tomllib
from dataclasses import dataclass
from typing import Any, Literal

Source = Literal["package.json", "pyproject.toml", "Makefile", "justfile"]
SOURCES: tuple[Source, ...] = ("package.json", "pyproject.toml", "Makefile", "justfile")
MAX_SCRIPTS = 500

_NAME = re.compile(r"[A-Za-z0-9_][\w.:@/+-]{0,99}")
_TARGET = re.compile(r"^(?P<name>[A-Za-z0-9_][\w./-]*)(?:\s+[\w./-]+)*\s*::?(?![=:])")
_RECIPE = re.compile(r"^@?(?P<name>[A-Za-z_][\w-]*)(?:\s[^:\n]*)?:(?!=)")
_ENTRY = re.compile(r"(?P<module>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):(?P<call>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)")
_KEYWORDS = frozenset({"set", "alias", "export", "import", "mod", "if", "else"})


@dataclass(frozen=True, slots=True)
class Script:
    """One script: its name, its text where the manifest has one, and the argv that runs it."""

    name: str
    source: Source
    manager: str
    command: str | None
    argv: tuple[str, ...]


def scripts_of(source: Source, text: str, manager: str) -> list[Script]:
    """The scripts of one manifest; an unreadable manifest has none."""
    match source:
        case "package.json":
            return _from_package_json(text, manager)
        case "pyproject.toml":
            return _from_pyproject(text, manager)
        case "Makefile":
            return _from_lines(text, _TARGET, "Makefile", ("make", "--"))
        case "justfile":
            return _from_lines(text, _RECIPE, "justfile", ("just",))


def node_manager(names: frozenset[str], package_json: str | None) -> str:
    """The manager of the lock file, else the one the manifest names, else npm."""
    locks = {"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn", "bun.lockb": "bun", "bun.lock": "bun"}
    locks |= {"package-lock.json": "npm", "npm-shrinkwrap.json": "npm"}
    for lock, manager in locks.items():
        if lock in names:
            return manager
    named = _object(package_json or "").get("packageManager")
    manager = named.partition("@")[0] if isinstance(named, str) else ""
    return manager if manager in ("npm", "pnpm", "yarn", "bun") else "npm"


def python_manager(names: frozenset[str]) -> str:
    """The manager of the lock file, else plain Python."""
    locks = {"uv.lock": "uv", "poetry.lock": "poetry", "pdm.lock": "pdm"}
    return next((manager for lock, manager in locks.items() if lock in names), "python")


def with_arguments(script: Script, arguments: list[str]) -> list[str]:
    """The argv with the caller's arguments, which a manager must not parse as its own options."""
    if not arguments:
        return list(script.argv)
    separator = ["--"] if script.manager in ("npm", "pnpm") else []
    return [*script.argv, *separator, *arguments]


def _from_package_json(text: str, manager: str) -> list[Script]:
    scripts = _object(text).get("scripts")
    if not isinstance(scripts, dict):
        return []
    return [
        Script(name, "package.json", manager, command, (manager, "run", name))
        for name, command in list(scripts.items())[:MAX_SCRIPTS]
        if isinstance(command, str) and _NAME.fullmatch(name)
    ]


def _from_pyproject(text: str, manager: str) -> list[Script]:
    try:
        project: dict[str, Any] = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return []
    found: dict[str, Script] = {}
    for name, entry in _table(project, "project", "scripts").items():
        if isinstance(entry, str) and _NAME.fullmatch(name) and (match := _ENTRY.match(entry)):
            found[name] = Script(name, "pyproject.toml", manager, entry, _entry_argv(name, manager, match))
    for tool, key, runner in (("poe", "tasks", "poe"), ("pdm", "scripts", "pdm"), ("taskipy", "tasks", "task")):
        for name, entry in _table(project, "tool", tool, key).items():
            if _NAME.fullmatch(name) and name not in found:
                argv = ("pdm", "run", name) if runner == "pdm" else (runner, name)
                found[name] = Script(name, "pyproject.toml", runner, entry if isinstance(entry, str) else None, argv)
    return list(found.values())[:MAX_SCRIPTS]


def _entry_argv(name: str, manager: str, entry: re.Match[str]) -> tuple[str, ...]:
    if manager != "python":
        return (manager, "run", name)
    module, call = entry["module"], entry["call"]
    code = f"import sys, importlib; sys.exit(importlib.import_module({module!r}).{call}())"
    return ("python3", "-c", code)


def _from_lines(text: str, pattern: re.Pattern[str], source: Source, before: tuple[str, ...]) -> list[Script]:
    found: dict[str, Script] = {}
    for line in text.splitlines()[:20_000]:
        match = pattern.match(line[:500])
        if match is None or match["name"] in _KEYWORDS or len(found) >= MAX_SCRIPTS:
            continue
        name = match["name"]
        found.setdefault(name, Script(name, source, before[0], None, (*before, name)))
    return list(found.values())


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _table(value: Any, *keys: str) -> dict[str, Any]:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}

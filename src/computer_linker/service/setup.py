"""First set-up: create what is missing, expose exactly the named folder, and touch nothing else."""

import copy
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from computer_linker.auth.owner_token import new_token
from computer_linker.config import defaults
from computer_linker.config.load import parse, read_document, with_identity
from computer_linker.config.overlaps import take_over
from computer_linker.config.roots import confirm
from computer_linker.config.runtime import forbidden_root
from computer_linker.config.schema import Config
from computer_linker.config.store import ensure, exists, first_document
from computer_linker.errors import ConfigInvalid
from computer_linker.model.ids import new_ulid
from computer_linker.service.changing_config import change_recorded
from computer_linker.system import os

DEMO_SCOPE = "demo"
_DEMO_FILES = {
    "notes.txt": "Hello from the demo folder.\nAsk your client to add a line below.\n",
    "src/hello.py": 'def greet(name: str) -> str:\n    return f"Hello, {name}!"\n\n\nprint(greet("world"))\n',
}


@dataclass(frozen=True)
class SetupChoices:
    """What the person requested. `None` keeps an existing scope's setting."""

    folder: Path | None = None
    write: bool | None = None
    shell: bool = False
    codex: bool = False
    screen: bool = False
    git: bool = False
    scope_id: str | None = None
    name: str | None = None


@dataclass
class SetUp:
    """What was done, one sentence each, and the resulting config."""

    config: Config
    done: list[str] = field(default_factory=list)


def set_up(home: Path, choices: SetupChoices, operation_id: str | None = None) -> SetUp:
    """Create config, identity, token and scope where they are missing. Raises ConfigInvalid, having changed no scope."""
    root = None if choices.folder is None else checked_folder(choices.folder, home)
    done = ["Made a config and an owner token."] if ensure(home, new_token()) else []

    def edit(document: dict[str, Any]) -> None:
        if "ownerToken" not in document:
            document["ownerToken"] = new_token()
            done.append("Made an owner token.")
        done.extend(_with_scopes(document, root, choices, home))

    config = change_recorded(home, operation_id or new_ulid(), edit)
    for scope in config.scopes:
        if f"Added scope {scope.id} for {root}." in done:
            confirm(home, scope)
    return SetUp(config, done)


def preview(home: Path, choices: SetupChoices) -> SetUp:
    """What `set_up` would do and make. Nothing is written. Raises ConfigInvalid as `set_up` would."""
    root = None if choices.folder is None else checked_folder(choices.folder, home)
    done: list[str] = []
    if exists(home):
        document = copy.deepcopy(with_identity(read_document(home).value, home))
    else:
        document = first_document(new_token())
        done.append("Made a config and an owner token.")
    done.extend(_with_scopes(document, root, choices, home, is_preview=True))
    return SetUp(parse(document), done)


def checked_folder(folder: Path, home: Path) -> str:
    """The folder as an absolute root. Raises ConfigInvalid for one that cannot be exposed."""
    root = os.path.abspath(folder.expanduser())  # links stay as they are written
    if not Path(root).is_dir():
        raise ConfigInvalid(f"{root} is not a folder", "name an existing folder")
    problem = forbidden_root(root, Path(os.path.realpath(home)))
    if problem is not None:
        raise ConfigInvalid(f"{root} {problem}", "choose a project folder")
    return root


def folder_scope(document: dict[str, Any], root: str, choices: SetupChoices) -> dict[str, Any]:
    """A new folder scope: reading, search, git and history; writing and evidence unless narrowed; programs only when asked."""
    capabilities = [*defaults.READ, *(() if choices.write is False else defaults.WRITE), *_programs(choices)]
    taken = {scope["id"].casefold() for scope in document.get("scopes", [])}
    scope: dict[str, Any] = {
        "id": choices.scope_id or _free_id(Path(root).name, taken),
        "name": choices.name or Path(root).name,
        "type": "folder",
        "roots": [root],
        "capabilities": capabilities,
    }
    if defaults.EXECUTES & set(capabilities):
        scope["policy"] = defaults.execution_policy(shell=choices.shell, codex=choices.codex)
    return scope


def computer_scope(document: dict[str, Any], choices: SetupChoices) -> dict[str, Any]:
    """A new scope for this computer's screen: read-only, and every act needs confirmation."""
    taken = {scope["id"].casefold() for scope in document.get("scopes", [])}
    return {
        "id": choices.scope_id or _free_id("screen", taken),
        "name": choices.name or "Screen",
        "type": "computer",
        "capabilities": [*defaults.SCREEN],
        "policy": {"confirm": "act"},
    }


def _with_scopes(
    document: dict[str, Any], root: str | None, choices: SetupChoices, home: Path, *, is_preview: bool = False
) -> list[str]:
    done: list[str] = []
    scopes: list[dict[str, Any]] = list(document.get("scopes", []))
    if root is not None:
        # A named folder replaces the placeholder scope.
        stood_in = [scope["id"] for scope in scopes if scope["id"] in (defaults.BOOTSTRAP_SCOPE, DEMO_SCOPE)]
        scopes = [scope for scope in scopes if scope["id"] not in stood_in]
        done.extend(
            f"Removed scope {name}, which stood in until a folder was named; its files stay." for name in stood_in
        )
        document["scopes"] = scopes
        same = next((scope for scope in scopes if _is_at(scope, root)), None)
        if same is None:
            added = folder_scope(document, root, choices)
            asks = take_over(added, scopes)
            scopes.append(added)
            done += [f"Added scope {added['id']} for {root}.", *asks]
        else:
            done.extend(_adjusted(same, choices))
    elif not scopes:
        demo = demo_folder(home) if is_preview else make_demo(home)
        scopes.append(
            folder_scope(document, str(demo), SetupChoices(write=choices.write, scope_id=DEMO_SCOPE, name="Demo"))
        )
        done.append(f"Added the demo scope for {demo}.")
    if choices.screen and not any("screen:capture" in scope.get("capabilities", []) for scope in scopes):
        scopes.append(computer_scope({"scopes": scopes}, SetupChoices()))
        done.append(f"Added scope {scopes[-1]['id']} for screenshots.")
    document["scopes"] = scopes
    return done


def _adjusted(scope: dict[str, Any], choices: SetupChoices) -> list[str]:
    """Return an existing scope with the requested changes; other rights stay."""
    before = list(scope.get("capabilities", []))
    kept = [name for name in before if not (choices.write is False and name in (*defaults.WRITE, "git:write"))]
    wanted = [*(defaults.WRITE if choices.write else ()), *_programs(choices)]
    after = list(dict.fromkeys([*kept, *wanted]))
    if after == before:
        return []
    scope["capabilities"] = after
    policy = scope.get("policy", {})
    allowed = policy.get("allowedCommands")
    if defaults.EXECUTES & set(after) and allowed is None:
        scope["policy"] = defaults.with_execution(policy, shell=choices.shell, codex=choices.codex)
    elif choices.codex and defaults.CODEX_RULE not in map(defaults.pattern_of, allowed):
        scope["policy"] = {**policy, "allowedCommands": [*allowed, defaults.CODEX_RULE]}
    return [f"Changed what scope {scope['id']} allows."]


def demo_folder(home: Path) -> Path:
    """Where the demo folder is, or would be."""
    return home.with_name(f"{home.name.lstrip('.')}-demo")


def make_demo(home: Path) -> Path:
    """Create a small demo folder beside the state folder; existing files are not changed."""
    folder = demo_folder(home)
    for name, text in _DEMO_FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.write_text(text)
    return folder


def _programs(choices: SetupChoices) -> tuple[str, ...]:
    wanted = ((choices.git, defaults.GIT), (choices.shell, defaults.SHELL), (choices.codex, defaults.CODEX))
    return tuple(name for is_wanted, names in wanted if is_wanted for name in names)


def _is_at(scope: dict[str, Any], root: str) -> bool:
    return [os.path.realpath(place) for place in scope.get("roots", [])] == [os.path.realpath(root)]


def _free_id(name: str, taken: set[str]) -> str:
    base = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-._").lower()[:56] or "folder"
    number = 1
    chosen = base
    while chosen.casefold() in taken:
        number += 1
        chosen = f"{base}-{number}"
    return chosen

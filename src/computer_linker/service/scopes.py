"""The owner's scopes in config.json: finding one, and recording which folders its roots are."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from anyio import to_thread
from pydantic import ValidationError

from computer_linker.config.load import CONFIG_NAME, load
from computer_linker.config.overlaps import unasked
from computer_linker.config.roots import confirm
from computer_linker.config.runtime import forbidden_root, state_inside
from computer_linker.config.schema import Config
from computer_linker.config.store import exists
from computer_linker.errors import ConfigInvalid, InvalidRequest, NotFound
from computer_linker.model.scope import Scope, ScopePolicy
from computer_linker.policy.names import held_in
from computer_linker.registry.cli_options import fields_of, read_value, type_name
from computer_linker.registry.context import Context
from computer_linker.service.settings import live_config
from computer_linker.system import os

_PLAIN_KINDS = ("true or false", "whole number", "list of")
_SYSTEM = (
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/run", "/sbin", "/sys", "/usr", "/var/cache", "/var/lib",
    "/var/log", "/var/spool", "/System", "/Library", "/private/etc",
)  # fmt: skip
_OF_USERS = ("/dev/shm", "/run/user", "/run/media", "/usr/src", "/usr/local/src")  # noqa: S108  # compared, not written to
"""Folders among these that hold files of users and projects."""


def scope_in(document: dict[str, Any], scope_id: str) -> dict[str, Any]:
    """The scope of this id in a config document. Raises NotFound."""
    for scope in document.get("scopes", []):
        if scope["id"] == scope_id:
            found: dict[str, Any] = scope
            return found
    raise _not_found(scope_id)


def known_scope(config: Config, scope_id: str) -> Scope:
    """The scope of this id. Raises NotFound with those there are."""
    found = config.scope(scope_id)
    if found is None:
        raise _not_found(scope_id)
    return found


def policy_names() -> str:
    """Every policy field with its values, for the help of `--policy`."""
    return "; ".join(f"{name}={kind}" for name, kind in _policy_kinds().items())


def _policy_kinds() -> dict[str, str]:
    """What each policy field takes."""
    fields = fields_of(ScopePolicy.model_json_schema(by_alias=True))
    return {name: type_name(field) for name, field in fields.items()}


def _is_policy_value(name: str, value: Any) -> bool:
    """Whether a policy field takes this value, whatever the others are."""
    try:
        ScopePolicy.model_validate({name: value})
    except ValidationError as error:
        return all(name not in problem["loc"] for problem in error.errors())
    return True


def policy_pair(text: str) -> tuple[str, Any]:
    """The name and value of one `--policy`; without a value it is None. Raises InvalidRequest."""
    name, separator, value = text.partition("=")
    if not separator:
        raise InvalidRequest(
            f"{text!r} is not name=value.", hint="for example: --policy network=false --policy sandbox=required"
        )
    given = None if value == "" else read_value(value)
    kind = _policy_kinds().get(name, "")
    # A choice of names is left to the config's own check, which knows the nearest one.
    if given is not None and any(word in kind for word in _PLAIN_KINDS) and not _is_policy_value(name, given):
        raise InvalidRequest(
            f"{name} is {kind}; {value!r} is not. Nothing was changed.", hint=_policy_hint(name, kind, value)
        )
    return name, given


def _policy_hint(name: str, kind: str, value: str) -> str:
    if name == "network":
        return "all hosts or none: --policy network=true or =false; some: computer-linker scope allow-host SCOPE HOST"
    if kind.startswith("list of"):
        return f"a list is written --policy '{name}=[\"{value}\"]'"
    return f"for example --policy {name}={'true' if kind.startswith('true') else '60'}"


def warn_of_unasked(ctx: Context, config: Config, scope_id: str) -> None:
    """Warn when clients can change a folder through this scope, or through another one, where one of the two asks."""
    for found in unasked(config.scopes):
        if scope_id in (found.scope, found.asking):
            ctx.warn(str(found))


def warn_of_refusal(ctx: Context) -> None:
    """Warn when what is in force is not what config.json has now."""
    for sentence in ctx.services.config.refused:
        ctx.warn(f"config.json is not valid and not in force: {sentence}")


async def pin_roots(home: Path, scope_id: str) -> dict[str, str]:
    """Record which folders the scope's roots are now; where each really lies."""
    # Another process may hold the config's lock.
    return await to_thread.run_sync(_pin_roots, home, scope_id)


def _pin_roots(home: Path, scope_id: str) -> dict[str, str]:
    scope = load(home).scope(scope_id)
    if scope is None:
        raise _not_found(scope_id)
    found = {root: identity.real for root, identity in confirm(home, scope).items()}
    # The service reads its config again when the file changed, and with it which folders were confirmed.
    (home / CONFIG_NAME).touch()
    return found


def _not_found(scope_id: str) -> NotFound:
    return NotFound(f"There is no scope {scope_id[:80]}.", hint="computer-linker scope list shows them")


# What an owner should know before a folder is exposed: it holds more than a project, or it is exposed already.


def cautions(folders: list[str], home: Path, *, scope: str | None = None, merges: bool = False) -> list[str]:
    """One sentence for each reason to think again. `scope` is the one that gets these folders.

    `merges`: a folder that is exposed already gets no second scope.
    """
    state = Path(os.path.realpath(home))
    # What cannot be exposed at all is refused, and needs no warning.
    exposable = [folder for folder in folders if Path(folder).is_dir() and forbidden_root(folder, state) is None]
    return [sentence for folder in exposable for sentence in _of(folder, home, scope, merges=merges)]


def _of(folder: str, home: Path, scope: str | None, *, merges: bool) -> Iterator[str]:
    real = Path(os.path.realpath(folder))
    wide = more_than_a_project(folder)
    if wide is not None:
        yield f"{folder} {wide}"
    if state_inside(folder, Path(os.path.realpath(home))) is not None:
        yield f"{folder} contains the state folder {home}, which is kept out of the scope."
    if not merges:
        others = [other for other in _exposing(real, home) if other != scope]
        if others:
            yield f"{folder} is exposed already, by scope {' and '.join(others)}."


def more_than_a_project(folder: str) -> str | None:
    """Why to think again before clients get this folder, to follow its name; None for an ordinary one."""
    real, own = Path(os.path.realpath(folder)), Path.home().resolve()
    if own.is_relative_to(real):
        what = "your whole home folder" if own == real else "a folder around your home folder"
        return f"is {what}. Keys and passwords stay closed; everything else in it is open."
    match held_in(real.parts[1:], real.relative_to(own).parts if real.is_relative_to(own) else None):
        case "logins":
            return (
                "holds keys or logins. Only files known by their own names stay closed; everything else in it is open."
            )
        case "programs":
            return "holds files that other programs run or trust. A client that changes them chooses what runs as you."
        case _ if _is_of_the_system(real):
            leads = "" if str(real) == os.path.abspath(folder) else f"leads to {real}, which "  # links are kept
            return (
                f"{leads}is a folder of the system. It holds settings, programs or data of every user and service; whatever "
                "you may read or change there, a client may."
            )
        case _:
            return None


def _is_of_the_system(real: Path) -> bool:
    """Whether a folder belongs to the operating system, by the file system hierarchy standard."""
    inside = [place for place in _SYSTEM if real.is_relative_to(place)]
    return bool(inside) and not any(real.is_relative_to(place) for place in _OF_USERS)


def _exposing(real: Path, home: Path) -> list[str]:
    config = _config(home)
    scopes = config.scopes if config is not None else []
    return [scope.id for scope in scopes if str(real) in (os.path.realpath(root) for root in scope.roots)]


def _config(home: Path) -> Config | None:
    try:
        return live_config(home).current() if exists(home) else None
    except ConfigInvalid:
        # The command itself is refused for it.
        return None

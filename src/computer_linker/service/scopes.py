"""The owner's scopes in config.json: finding one, and recording which folders its roots are."""

from pathlib import Path
from typing import Any

from anyio import to_thread
from pydantic import ValidationError

from computer_linker.config.load import CONFIG_NAME, load
from computer_linker.config.overlaps import unasked
from computer_linker.config.roots import confirm
from computer_linker.config.schema import Config
from computer_linker.errors import InvalidRequest, NotFound
from computer_linker.model.scope import Scope, ScopePolicy
from computer_linker.registry.cli_options import fields_of, read_value, type_name
from computer_linker.registry.context import Context

_PLAIN_KINDS = ("true or false", "whole number", "list of")


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

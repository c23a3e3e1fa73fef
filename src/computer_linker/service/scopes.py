"""The owner's scopes in config.json: finding one, and recording which folders its roots are."""

from pathlib import Path
from typing import Any

from anyio import to_thread

from computer_linker.config.load import CONFIG_NAME, load
from computer_linker.config.overlaps import unasked
from computer_linker.config.roots import confirm
from computer_linker.config.schema import Config
from computer_linker.errors import InvalidRequest, NotFound
from computer_linker.model.scope import Scope, ScopePolicy
from computer_linker.registry.cli_options import fields_of, read_value, type_name
from computer_linker.registry.context import Context


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
    schema = ScopePolicy.model_json_schema(by_alias=True)
    fields = fields_of(schema)
    return "; ".join(f"{name}={type_name(field)}" for name, field in fields.items())


def policy_pair(text: str) -> tuple[str, Any]:
    """The name and value of one `--policy`; without a value it is None. Raises InvalidRequest."""
    name, separator, value = text.partition("=")
    if not separator:
        raise InvalidRequest(
            f"{text!r} is not name=value.", hint="for example: --policy network=false --policy sandbox=required"
        )
    return name, None if value == "" else read_value(value)


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

"""scope.edit: change what one scope allows."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from computer_linker.errors import InvalidRequest
from computer_linker.model.scope import Scope
from computer_linker.registry.cli_options import read_value
from computer_linker.registry.owner import (
    Context,
    Effect,
    Example,
    LocalPath,
    Model,
    Named,
    Note,
    Positional,
    ScopeId,
    Shown,
    owner_operation,
)
from computer_linker.service.cautions import cautions
from computer_linker.service.changing_config import change_config
from computer_linker.service.scopes import is_policy_value, pin_roots, policy_kinds, policy_names, scope_in
from computer_linker.service.setup import checked_folder

_PLAIN_KINDS = ("true or false", "whole number", "list of")


class EditInput(Model):
    scope: Annotated[str, Field(description="The scope's id."), Positional(), ScopeId()]
    allow: Annotated[
        list[str], Field(description="A capability to give, such as fs:write."), Named(metavar="CAPABILITY")
    ] = []
    deny: Annotated[list[str], Field(description="A capability to take away."), Named(metavar="CAPABILITY")] = []
    name: Annotated[str | None, Field(description="A name for people.")] = None
    root: Annotated[
        list[str], Field(description="The folders, in place of the present ones."), LocalPath(), Named(metavar="FOLDER")
    ] = []
    policy: Annotated[
        list[str],
        Field(description=f"A policy field; NAME= takes it away. Names and values: {policy_names()}."),
        Named(metavar="NAME=VALUE"),
    ] = []


def _text(scope: Scope) -> Iterator[Shown]:
    yield Note(f"Changed scope {scope.id}.")


@owner_operation(
    "scope.edit",
    effect=Effect.CHANGE,
    needs_setup=True,
    text=_text,
    cautions=lambda input, home: cautions(input.root, home, scope=input.scope),
    examples=[
        Example(
            "No writing, and ask first.", {"input": {"scope": "app", "deny": ["fs:write"], "policy": ["confirm=act"]}}
        )
    ],
)
async def scope_edit(ctx: Context, input: EditInput) -> Scope:
    """Change one scope. It holds from the next call on; the service need not be restarted."""
    home = ctx.services.home
    roots = [checked_folder(Path(root), home) for root in input.root]
    changes = dict(_pair(text, input.scope) for text in input.policy)

    def edit(document: dict[str, Any]) -> None:
        scope = scope_in(document, input.scope)
        kept = [capability for capability in scope.get("capabilities", []) if capability not in input.deny]
        scope["capabilities"] = list(dict.fromkeys([*kept, *input.allow]))
        scope.update({"roots": roots} if roots else {}, **({"name": input.name} if input.name is not None else {}))
        if changes:
            policy = {**scope.get("policy", {}), **changes}
            scope["policy"] = {name: value for name, value in policy.items() if value is not None}

    stored = (await change_config(ctx, edit)).scope(input.scope)
    assert stored is not None, "it was just stored"
    if roots:
        await pin_roots(home, input.scope)
    ctx.note(
        scope=input.scope,
        allow=" ".join(input.allow) or None,
        deny=" ".join(input.deny) or None,
        policy=" ".join(sorted(changes)) or None,
        root=" ".join(roots) or None,
    )
    return stored


def _pair(text: str, scope: str) -> tuple[str, Any]:
    name, separator, value = text.partition("=")
    if not separator:
        raise InvalidRequest(
            f"{text!r} is not name=value.", hint="for example: --policy network=false --policy sandbox=required"
        )
    given = None if value == "" else read_value(value)
    kind = policy_kinds().get(name, "")
    # A choice of names is left to the config's own check, which knows the nearest one.
    if given is not None and any(word in kind for word in _PLAIN_KINDS) and not is_policy_value(name, given):
        raise InvalidRequest(
            f"{name} is {kind}; {value!r} is not. Nothing was changed.", hint=_hint(name, kind, value, scope)
        )
    return name, given


def _hint(name: str, kind: str, value: str, scope: str) -> str:
    if name == "network":
        return (
            f"all hosts or none: --policy network=true or =false; some: computer-linker scope allow-host {scope} HOST"
        )
    if kind.startswith("list of"):
        return f"a list is written --policy '{name}=[\"{value}\"]'"
    return f"for example --policy {name}={'true' if kind.startswith('true') else '60'}"

"""scope.edit: change what one scope allows."""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from computer_linker.config.defaults import EXECUTES, needs_list, policy_of
from computer_linker.config.overlaps import take_over
from computer_linker.model.scope import Scope
from computer_linker.registry.owner import (
    Context,
    Effect,
    Example,
    LocalPath,
    Model,
    Named,
    Note,
    ScopeArgument,
    Shown,
    owner_operation,
)
from computer_linker.service.changing_config import change_config
from computer_linker.service.scopes import cautions, pin_roots, policy_names, policy_pair, scope_in, warn_of_unasked
from computer_linker.service.setup import checked_folder

_NO_COMMANDS = (
    "Only commands that read run, for its policy had no list of commands. Allow others: "
    'computer-linker scope allow {} "npm test *"'
)


class EditInput(Model):
    scope: ScopeArgument
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


class EditedScope(Scope):
    changed: Annotated[bool, Field(description="False: the scope was like that already.")]
    taken_over: Annotated[list[str], Field(description="What it does as scopes that have one of its folders do.")] = []


def _text(scope: EditedScope) -> Iterator[Shown]:
    yield Note(f"Changed scope {scope.id}." if scope.changed else f"Nothing to change in scope {scope.id}.")
    yield from map(Note, scope.taken_over)


@owner_operation(
    "scope.edit",
    did="changed the scope {change}",
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
async def scope_edit(ctx: Context, input: EditInput) -> EditedScope:
    """Change one scope. It holds from the next call on; the service need not be restarted.

    With a folder that other scopes have, it asks you as the strictest of those does, unless its own policy differs.
    """
    home = ctx.services.home
    roots = [checked_folder(Path(root), home) for root in input.root]
    changed: list[bool] = []
    asks: list[str] = []
    changes = dict(map(policy_pair, input.policy))

    def edit(document: dict[str, Any]) -> None:
        scope = scope_in(document, input.scope)
        before = copy.deepcopy(scope)
        kept = [capability for capability in scope.get("capabilities", []) if capability not in input.deny]
        scope["capabilities"] = list(dict.fromkeys([*kept, *input.allow]))
        scope.update({"roots": roots} if roots else {}, **({"name": input.name} if input.name is not None else {}))
        if changes:
            given = {**policy_of(scope), **changes}
            policy = {name: value for name, value in given.items() if value is not None}
            scope.update({"policy": policy} if policy or "policy" in scope else {})
        if EXECUTES & set(input.allow) and "allowedCommands" not in changes and needs_list(scope):
            scope["policy"] = {**scope["policy"], "allowedCommands": []}
            asks.append(_NO_COMMANDS.format(scope["id"]))
        if roots:
            asks.extend(take_over(scope, [other for other in document["scopes"] if other is not scope]))
        changed.append(scope != before)

    config = await change_config(ctx, edit)
    stored = config.scope(input.scope)
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
    warn_of_unasked(ctx, config, input.scope)
    return EditedScope.from_wire({**stored.to_wire(), "changed": changed[0], "takenOver": asks})

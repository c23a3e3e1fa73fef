"""scope.add: expose a folder, or the screen and desktop."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from computer_linker.config.defaults import policy_of
from computer_linker.config.overlaps import take_over
from computer_linker.errors import InvalidRequest
from computer_linker.model.scope import Scope
from computer_linker.registry.owner import (
    Context,
    Effect,
    Example,
    LocalPath,
    Model,
    Named,
    Note,
    Positional,
    Shown,
    owner_operation,
)
from computer_linker.service.changing_config import change_config, first_config
from computer_linker.service.scopes import cautions, pin_roots, policy_pair, warn_of_unasked
from computer_linker.service.setup import SetupChoices, checked_folder, computer_scope, folder_scope


class AddInput(Model):
    folder: Annotated[str | None, Field(description="The folder to expose."), Positional(), LocalPath()] = None
    id: Annotated[str | None, Field(description="Its id; made from the folder's name if left out.")] = None
    name: Annotated[str | None, Field(description="A name for people.")] = None
    write: Annotated[bool | None, Field(description="Whether files may be changed."), Named("--write/--read-only")] = (
        None
    )
    shell: Annotated[bool, Field(description="Allow commands from the default list, inside the sandbox.")] = False
    codex: Annotated[bool, Field(description="Allow the local Codex CLI.")] = False
    computer: Annotated[bool, Field(description="The screen and desktop instead of a folder.")] = False
    allow: Annotated[
        list[str], Field(description="A further capability, such as git:write."), Named(metavar="CAPABILITY")
    ] = []
    policy: Annotated[
        list[str], Field(description="A policy field, as of `scope edit`."), Named(metavar="NAME=VALUE")
    ] = []


class AddedScope(Scope):
    taken_over: Annotated[
        list[str], Field(description="What holds as in the scopes that share its folder, one sentence each.")
    ] = []


def _text(scope: AddedScope) -> Iterator[Shown]:
    yield Note(f"Added scope {scope.id} for {' '.join(scope.roots) or 'the screen and desktop'}.")
    yield from map(Note, scope.taken_over)


@owner_operation(
    "scope.add",
    did="added the scope {scope}[ for {root}]",
    effect=Effect.CHANGE,
    text=_text,
    cautions=lambda input, home: cautions([input.folder] if input.folder else [], home, scope=input.id),
    examples=[
        Example("Expose a folder, with commands.", {"input": {"folder": "/home/me/code", "shell": True}}, runs=False),
        Example("Expose the screen.", {"input": {"computer": True}}),
    ],
)
async def scope_add(ctx: Context, input: AddInput) -> AddedScope:
    """Expose a folder: reading and history, writing unless --read-only, programs only when asked for.

    Where it shares a folder with other scopes, it asks you as the strictest of those does, unless --policy differs.
    With --computer: the screen, to look at; more with --allow, and a person is asked before every act.
    """
    if input.computer == (input.folder is not None):
        raise InvalidRequest("Name a folder, or say --computer.", hint="computer-linker scope add --help")
    home = ctx.services.home
    ctx.note(scope=input.id, root=input.folder)
    root = None if input.folder is None else checked_folder(Path(input.folder), home)
    if await first_config(ctx):
        ctx.warn("Made a config and an owner token.")
    choices = SetupChoices(None, input.write, input.shell, input.codex, scope_id=input.id, name=input.name)
    policy = {name: value for name, value in map(policy_pair, input.policy) if value is not None}
    added: list[str] = []
    asks: list[str] = []

    def edit(document: dict[str, Any]) -> None:
        scope = computer_scope(document, choices) if root is None else folder_scope(document, root, choices)
        scope["capabilities"] = list(dict.fromkeys([*scope["capabilities"], *input.allow]))
        if policy:
            scope["policy"] = {**policy_of(scope), **policy}
        others = document.get("scopes", [])
        asks.extend(take_over(scope, others) if root is not None else ())
        document["scopes"] = [*others, scope]
        added.append(scope["id"])

    config = await change_config(ctx, edit)
    stored = config.scope(added[0])
    assert stored is not None, "it was just stored"
    await pin_roots(home, stored.id)
    ctx.note(scope=stored.id, root=root, capabilities=" ".join(stored.capabilities))
    warn_of_unasked(ctx, config, stored.id)
    return AddedScope.from_wire({**stored.to_wire(), "takenOver": asks})

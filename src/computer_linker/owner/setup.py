"""setup: make what is missing, and expose exactly the folder that was named."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from anyio import to_thread
from pydantic import Field

from computer_linker.model.scope import Scope
from computer_linker.registry.owner import (
    Context,
    Effect,
    Example,
    LocalPath,
    Model,
    Named,
    Positional,
    Shown,
    owner_operation,
)
from computer_linker.service.changing_config import changed_lines
from computer_linker.service.lifetime import Lifetime
from computer_linker.service.scopes import cautions
from computer_linker.service.setup import SetupChoices, set_up


class SetupInput(Model):
    folder: Annotated[
        str | None,
        Field(description="The folder to expose. Left out: what is configured, or a demo."),
        Positional(),
        LocalPath(),
    ] = None
    write: Annotated[bool | None, Field(description="Whether files may be changed."), Named("--write/--read-only")] = (
        None
    )
    shell: Annotated[bool, Field(description="Allow commands from the default list, inside the sandbox.")] = False
    codex: Annotated[bool, Field(description="Allow the local Codex CLI.")] = False
    screen: Annotated[bool, Field(description="Allow screenshots.")] = False
    git: Annotated[bool, Field(description="Allow staging, commits and worktrees.")] = False


class SetUp(Model):
    home: str
    machine_id: str
    done: Annotated[list[str], Field(description="What was made or changed, one sentence each.")]
    scopes: list[Scope]
    local_url: Annotated[str | None, Field(description="Where the running service serves it.")]


def _text(result: SetUp) -> Iterator[Shown]:
    yield from result.done or ["Everything was there already."]
    url = result.local_url
    yield f"The service at {url} uses it from now on." if url else "Serve with: computer-linker start"


def setup_cautions(input: SetupInput, home: Path) -> list[str]:
    """What to know before this folder is exposed."""
    return cautions([input.folder] if input.folder else [], home, merges=True)


@owner_operation(
    "setup",
    did="set this computer up[: {change}]",
    effect=Effect.CHANGE,
    text=_text,
    cautions=setup_cautions,
    examples=[Example("A demo folder to try things in.", {}, runs=False)],
)
async def setup(ctx: Context, input: SetupInput = SetupInput()) -> SetUp:
    """Set up what is missing, as `start` does, without serving."""
    folder = None if input.folder is None else Path(input.folder)
    choices = SetupChoices(folder, input.write, input.shell, input.codex, input.screen, git=input.git)
    made = await to_thread.run_sync(set_up, ctx.services.home, choices, ctx.operation_id)
    ctx.effect = "confirmed"
    lines = await to_thread.run_sync(changed_lines, ctx.services.home, ctx.operation_id)
    ctx.note(changes=len(made.done), changed="; ".join(lines) or None, unchanged=not made.done)
    running = ctx.services.peek(Lifetime)
    return SetUp(
        home=str(ctx.services.home),
        machine_id=made.config.machine_id,
        done=made.done,
        scopes=list(made.config.scopes),
        local_url=running.local_url if running is not None else None,
    )

"""quickstart: what `start` would do, without doing it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from anyio import to_thread
from pydantic import Field

from computer_linker.model.scope import Scope
from computer_linker.owner.setup import SetupInput, setup_cautions
from computer_linker.registry.owner import Context, Effect, Example, Model, Shown, owner_operation
from computer_linker.service.client_setup import stdio_lines
from computer_linker.service.setup import SetupChoices, preview


class Preview(Model):
    home: str
    would_do: Annotated[list[str], Field(description="What would be made or changed, one sentence each.")]
    scopes: Annotated[list[Scope], Field(description="What clients could use then.")]
    address: str
    connect: Annotated[dict[str, str], Field(description="The line that connects each client, over stdio.")]
    cautions: list[str]


def _text(result: Preview) -> Iterator[Shown]:
    yield f"Nothing was changed. `start` would do this, in the state folder {result.home}:"
    yield from (f"  {sentence}" for sentence in result.would_do or ["change nothing"])
    for scope in result.scopes:
        yield f"  expose {scope.id}: {' '.join(scope.roots) or 'the screen'} ({' '.join(scope.capabilities)})"
    yield f"  and listen at {result.address}, for programs of this computer with the owner token"
    yield from (f"warning: {sentence}" for sentence in result.cautions)
    yield "Then connect a client:"
    yield from (f"  {name}: {line}" for name, line in result.connect.items())
    yield "For clients elsewhere, add: --tunnel cloudflare, tailscale or openai"


@owner_operation("quickstart", effect=Effect.OBSERVE, text=_text, examples=[Example("What would happen?", {})])
async def quickstart(ctx: Context, input: SetupInput = SetupInput()) -> Preview:
    """Show what `start` would set up and expose, without doing it."""
    home = ctx.services.home
    folder = None if input.folder is None else Path(input.folder)
    choices = SetupChoices(folder, input.write, input.shell, input.codex, input.screen, git=input.git)
    planned = await to_thread.run_sync(preview, home, choices)
    return Preview(
        home=str(home),
        would_do=planned.done,
        scopes=list(planned.config.scopes),
        address=f"http://{planned.config.host}:{planned.config.port}/mcp",
        connect=stdio_lines(home),
        cautions=setup_cautions(input, home),
    )

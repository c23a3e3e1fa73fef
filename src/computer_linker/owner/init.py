"""init: a config, an identity and an owner token, and no scope."""

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import Field

from computer_linker.auth.owner_token import new_token
from computer_linker.registry.owner import Context, Effect, Example, Model, Shown, owner_operation
from computer_linker.service.changing_config import change_config, first_config


class Initialized(Model):
    home: str
    machine_id: str
    done: Annotated[list[str], Field(description="What was made, one sentence each.")]


def _text(result: Initialized) -> Iterator[Shown]:
    yield from result.done or ["Everything was there already."]
    yield f"This computer is {result.machine_id}; its state is in {result.home}."
    yield "Next: computer-linker scope add FOLDER"


@owner_operation(
    "init",
    did="made a first config",
    effect=Effect.CHANGE,
    text=_text,
    examples=[Example("Before any folder is exposed.", {})],
)
async def init(ctx: Context) -> Initialized:
    """Make a config with an identity, and an owner token where there is none. No folder is exposed."""
    done = ["Made a config and an owner token."] if await first_config(ctx) else []

    def edit(document: dict[str, Any]) -> None:
        if document.get("ownerToken") is None:
            document["ownerToken"] = new_token()
            done.append("Made an owner token.")

    config = await change_config(ctx, edit)
    return Initialized(home=str(ctx.services.home), machine_id=config.machine_id, done=done)

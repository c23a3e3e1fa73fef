"""config.show: the config, the token left out."""

import json
from typing import Annotated

from pydantic import Field

from computer_linker.config.load import load
from computer_linker.config.schema import Config
from computer_linker.registry.owner import Context, Effect, Example, Model, owner_operation


class ShowInput(Model):
    show_token: Annotated[bool, Field(description="Include the owner token.")] = False


@owner_operation(
    "config.show",
    effect=Effect.OBSERVE,
    text=lambda result: [json.dumps(result.to_wire(), indent=2, ensure_ascii=False)],
    examples=[Example("Without the token.", {})],
)
async def config_show(ctx: Context, input: ShowInput = ShowInput()) -> Config:
    """Print the config, the owner token left out. It is JSON with or without --json."""
    config = load(ctx.services.home)
    if input.show_token or config.owner_token is None:
        return config
    return config.model_copy(update={"owner_token": "(hidden:--show-token-shows-it)"})

"""config.show: the config, the token left out."""

import json
from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from computer_linker.config.load import load
from computer_linker.config.schema import Config
from computer_linker.registry.owner import Context, Effect, Example, Model, Shown, owner_operation


class ShowInput(Model):
    show_token: Annotated[bool, Field(description="Include the owner token.")] = False


def _text(result: Config) -> Iterator[Shown]:
    yield json.dumps(result.to_wire(), indent=2, ensure_ascii=False)


@owner_operation("config.show", effect=Effect.OBSERVE, text=_text, examples=[Example("Without the token.", {})])
async def config_show(ctx: Context, input: ShowInput = ShowInput()) -> Config:
    """Print the config, the owner token left out. It is JSON with or without --json."""
    config = load(ctx.services.home)
    if input.show_token or config.owner_token is None:
        return config
    return config.model_copy(update={"owner_token": "(hidden:--show-token-shows-it)"})

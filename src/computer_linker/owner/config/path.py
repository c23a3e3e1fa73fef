"""config.path: where config.json is."""

from collections.abc import Iterator

from computer_linker.config.load import CONFIG_NAME
from computer_linker.registry.owner import Context, Effect, Example, Model, Shown, owner_operation


class ConfigPath(Model):
    path: str


def _text(result: ConfigPath) -> Iterator[Shown]:
    yield result.path


@owner_operation("config.path", effect=Effect.OBSERVE, text=_text, examples=[Example("Where it is.", {})])
async def config_path(ctx: Context) -> ConfigPath:
    """Print where config.json is."""
    return ConfigPath(path=str(ctx.services.home / CONFIG_NAME))

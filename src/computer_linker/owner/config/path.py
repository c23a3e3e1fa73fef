"""config.path: where config.json is."""

from computer_linker.config.load import CONFIG_NAME
from computer_linker.registry.owner import Context, Effect, Example, Model, owner_operation


class ConfigPath(Model):
    path: str


@owner_operation(
    "config.path", effect=Effect.OBSERVE, text=lambda result: [result.path], examples=[Example("Where it is.", {})]
)
async def config_path(ctx: Context) -> ConfigPath:
    """Print where config.json is."""
    return ConfigPath(path=str(ctx.services.home / CONFIG_NAME))

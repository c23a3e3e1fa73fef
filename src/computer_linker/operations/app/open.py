"""app.open: start an application."""

from typing import Annotated

from pydantic import Field

from computer_linker.computer.facets.windows import App
from computer_linker.operations.app.preview import show_start
from computer_linker.providers.window_choice import refuse_hidden
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation


class OpenInput(Model):
    arguments: Annotated[
        list[Annotated[str, Field(max_length=4096)]],
        Field(max_length=20, description="Files or addresses to open; options are refused."),
    ] = []


class OpenedApp(Model):
    app: App


@operation(
    "app.open",
    did="opened the application",
    needs={Capability.APP_CONTROL},
    effect=Effect.ACT,
    on="computer",
    shows=show_start,
    deadline_s=30,
    facets=("apps",),
    examples=[Example("Open an editor.", {"target": "org.xfce.mousepad"}, runs=False)],
)
async def app_open(ctx: Context, target: str, input: OpenInput = OpenInput()) -> OpenedApp:
    """Start an installed application by its id or name and wait until its window shows."""
    excluded = ctx.scope.policy.excluded_applications
    refuse_hidden(App(id=target, name=target), excluded)
    for known in await ctx.computer.apps.list():
        if target.lower() in (known.id.lower(), known.name.lower()):
            refuse_hidden(known, excluded)
    app = await ctx.computer.apps.open(target, input.arguments)
    ctx.effect = "confirmed" if app.windows else "unverifiable"
    ctx.note(arguments=len(input.arguments))
    return OpenedApp(app=app)

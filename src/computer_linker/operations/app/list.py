"""app.list: applications that can be opened or are open."""

from typing import Annotated

from pydantic import Field

from computer_linker.computer.facets.windows import App
from computer_linker.providers.window_choice import is_hidden
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation


class AppListOptions(Model):
    running_only: Annotated[bool, Field(description="Leave out what has no window.")] = False


class AppList(Model):
    apps: list[App]


@operation(
    "app.list",
    did="listed applications",
    needs_any={Capability.APP_CONTROL, Capability.DESKTOP_OBSERVE},
    effect=Effect.OBSERVE,
    on="computer",
    deadline_s=20,
    facets=("apps",),
    examples=[Example("What is open?", {"options": {"runningOnly": True}}, runs=False)],
)
async def app_list(ctx: Context, options: AppListOptions = AppListOptions()) -> AppList:
    """List the applications of this desktop, with the windows of those that run."""
    apps = await ctx.computer.apps.list(running_only=options.running_only)
    shown = [app for app in apps if not is_hidden(app, ctx.scope.policy.excluded_applications)]
    ctx.note(apps=len(shown))
    return AppList(apps=shown)

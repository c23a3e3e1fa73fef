"""app.focus: bring an application to the front."""

from computer_linker.computer.facets.windows import App
from computer_linker.operations.app.preview import show_running
from computer_linker.providers.window_choice import running_app
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation


class FocusedApp(Model):
    app: App


@operation(
    "app.focus",
    did="focused the application",
    needs={Capability.APP_CONTROL},
    effect=Effect.ACT,
    on="computer",
    shows=show_running,
    deadline_s=15,
    facets=("apps", "windows"),
    examples=[Example("Bring an editor to the front.", {"target": "org.xfce.mousepad"}, runs=False)],
)
async def app_focus(ctx: Context, target: str) -> FocusedApp:
    """Bring the topmost window of a running application to the front and give it the keyboard."""
    app = await running_app(ctx.computer, target, ctx.scope.policy.excluded_applications)
    focused = await ctx.computer.apps.focus(app.id)
    window = await ctx.computer.windows.focused()
    ctx.effect = "confirmed" if window is not None and window.id in focused.windows else "suspected_noop"
    return FocusedApp(app=focused)

"""desktop.observe: how a window looks and what controls it has, in one answer."""

from typing import Annotated, Any

from pydantic import AliasChoices, Field

from computer_linker.computer.facets.accessibility import Limit
from computer_linker.errors import ProviderUnavailable
from computer_linker.model.envelope import Call
from computer_linker.operations.ui.tree import TreeOptions, view_of
from computer_linker.providers.ui.outline import Node
from computer_linker.providers.ui.route import Route, WindowRoute, follow
from computer_linker.providers.ui.view import View
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation

_DEEPEST = 8
_MOST = 2_000


class ObserveOptions(Model):
    include_screenshot: bool = True
    include_tree: Annotated[bool, Field(validation_alias=AliasChoices("includeTree", "includeAxTree"))] = True
    max_depth: Annotated[
        int, Field(ge=1, validation_alias=AliasChoices("maxDepth", "axMaxDepth"), description="How deep; at most 8.")
    ] = _DEEPEST
    max_nodes: Annotated[
        int,
        Field(ge=1, validation_alias=AliasChoices("maxNodes", "axMaxNodes"), description="How many; at most 2000."),
    ] = _MOST


class RouteTaken(Model):
    """Where the observation was made."""

    app: str
    pid: int | None
    window: str


class Evidence(Model):
    nodes: Annotated[list[Node], Field(description="The controls that show, in reading order.")]
    truncated: bool
    cut_by: list[Limit]
    screenshot: Annotated[
        dict[str, Any] | None, Field(description="As screen.capture answers; the image comes beside it.")
    ] = None


class Observation(Model):
    execution_id: str
    route: RouteTaken | None
    frame_id: Annotated[str | None, Field(description="Binds points in the screenshot; null without one.")]
    evidence: Evidence


@operation(
    "desktop.observe",
    did="looked at the desktop",
    needs={Capability.DESKTOP_OBSERVE},
    effect=Effect.OBSERVE,
    on="computer",
    deadline_s=30,
    facets=("windows",),
    examples=[
        Example("Look at the focused window.", {"target": "focused"}, runs=False),
        Example("Only the controls.", {"target": "focused", "options": {"includeScreenshot": False}}, runs=False),
    ],
)
async def desktop_observe(
    ctx: Context, target: str | Route | None = None, options: ObserveOptions = ObserveOptions()
) -> Observation:
    """Look at a window: a screenshot whose points can be clicked, and the controls with references.

    The screenshot also needs `screen:capture`; without it the controls come alone, with a warning.
    """
    place, view = await _described(ctx, target, options)
    shot = await _screenshot(ctx, place) if options.include_screenshot else None
    if place is None and shot is None:
        # Neither screen nor accessibility: the absent facet raises with the reason and what would help.
        await ctx.computer.accessibility.applications()
    ctx.note(nodes=0 if view is None else len(view.lines), screenshot=shot is not None)
    return Observation(
        execution_id=ctx.operation_id,
        route=None if place is None else RouteTaken(app=place.app.name, pid=place.app.pid, window=place.title),
        frame_id=None if shot is None else str(shot["frameId"]),
        evidence=_evidence(view, shot),
    )


async def _described(
    ctx: Context, target: Route | str | None, options: ObserveOptions
) -> tuple[WindowRoute | None, View | None]:
    """The window of the route, with its controls when requested; nothing where no accessibility bus runs."""
    has_descriptions = ctx.computer.capabilities().has("accessibility")
    try:
        if has_descriptions and options.include_tree:
            view = await view_of(ctx, target, _limits(ctx, options))
            return view.place, view
        if has_descriptions:
            return await follow(ctx.computer, ctx.scope, target), None
    except ProviderUnavailable:
        # No accessibility bus: a named application cannot be found, but the screen can be captured.
        if target not in (None, "focused", Route()):
            raise
    if options.include_tree:
        ctx.warn("No application here describes its controls; there is only the screenshot.")
    return None, None


def _limits(ctx: Context, options: ObserveOptions) -> TreeOptions:
    if options.max_depth > _DEEPEST or options.max_nodes > _MOST:
        ctx.warn(f"Limits are lowered to {_DEEPEST} levels and {_MOST} nodes. ui.tree goes deeper.")
    return TreeOptions(max_depth=min(options.max_depth, _DEEPEST), max_nodes=min(options.max_nodes, _MOST))


def _evidence(view: View | None, shot: dict[str, Any] | None) -> Evidence:
    nodes = [] if view is None else view.nodes()
    cut = [] if view is None else list(view.cut_by)
    return Evidence(nodes=nodes, truncated=bool(cut), cut_by=cut, screenshot=shot)


async def _screenshot(ctx: Context, place: WindowRoute | None) -> dict[str, Any] | None:
    """Capture through the dispatcher, so that the capture's own capability, policy and audit apply."""
    window = await _window_id(ctx, place)
    call = Call(ctx.scope.id, "screen.capture", "primary")
    if window is not None:
        call = Call(ctx.scope.id, "screen.capture_window", window)
    reply = await ctx.dispatch(call)
    if not reply.ok:
        ctx.warn(f"There is no screenshot: {reply.envelope['error']['message']}")
        return None
    ctx.attachments.extend(reply.attachments)
    ctx.warnings.extend(reply.envelope["warnings"])
    data = reply.envelope["data"]
    return data.to_wire() if isinstance(data, Model) else dict(data)


async def _window_id(ctx: Context, place: WindowRoute | None) -> str | None:
    if place is None or place.window is None:
        return None
    windows = await ctx.computer.windows.list()
    own = [one for one in windows if one.pid == place.app.pid]
    titled = [one for one in own if one.title == place.title[:200]]
    return next((one.id for one in titled or own), None)

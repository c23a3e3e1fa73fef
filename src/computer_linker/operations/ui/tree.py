"""ui.tree: the controls of an application or window."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Annotated, Self

from pydantic import AliasChoices, Field

from computer_linker.computer.facets.accessibility import Limit, TreeLimits
from computer_linker.errors import InvalidRequest, StaleReference
from computer_linker.model.ids import new_handle
from computer_linker.providers.refs import References
from computer_linker.providers.ui.outline import Node
from computer_linker.providers.ui.route import Route
from computer_linker.providers.ui.view import View, read_view
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation, shapes

MAX_CURSORS = 32


@dataclass(frozen=True, slots=True)
class Reading:
    """The nodes of one reading, and its target."""

    scope: str
    what: str
    nodes: dict[str, Node]


class Cursors:
    """The latest readings, a bounded number of them."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Reading] = OrderedDict()

    @classmethod
    def open(cls, services: object) -> Self:
        return cls()

    def keep(self, scope: str, what: str, nodes: list[Node]) -> str:
        """Store a reading; returns its cursor."""
        cursor = new_handle("view")
        self._kept[cursor] = Reading(scope, what, {node["ref"]: node for node in nodes})
        while len(self._kept) > MAX_CURSORS:
            self._kept.popitem(last=False)
        return cursor

    def changes(self, cursor: str, scope: str, what: str, nodes: list[Node]) -> tuple[list[Node], list[str]]:
        """The nodes that are new or different since the cursor, and the references of those that disappeared."""
        seen = self._kept.get(cursor)
        if seen is None or seen.scope != scope:
            raise StaleReference("That look is no longer remembered. Call again without `since`.", since=cursor[:64])
        if seen.what != what:
            raise InvalidRequest("`since` belongs to a look at something else, or with other options.")
        now = {node["ref"] for node in nodes}
        changed = [node for node in nodes if seen.nodes.get(node["ref"]) != node]
        return changed, [ref for ref in seen.nodes if ref not in now]


MAX_DEPTH = 32
MAX_NODES = 5_000
_READ_NODES = 10_000


class TreeOptions(Model):
    max_depth: Annotated[
        int, Field(ge=1, validation_alias=AliasChoices("maxDepth", "axMaxDepth"), description="How deep; at most 32.")
    ] = 8
    max_nodes: Annotated[
        int,
        Field(ge=1, validation_alias=AliasChoices("maxNodes", "axMaxNodes"), description="How many; at most 5000."),
    ] = 2_000
    since: Annotated[str | None, Field(max_length=64, description="A cursor: return only what changed since then.")] = (
        None
    )
    compact: Annotated[bool, Field(description="Leave out containers that say nothing.")] = True
    hidden: Annotated[bool, Field(description="Include what does not show, such as closed menus.")] = False


class UiTree(Model):
    app: str
    pid: int | None
    window: Annotated[str, Field(description="The window's title; empty for a whole application.")]
    nodes: Annotated[list[Node], Field(description="In reading order. With `since`, only new and changed ones.")]
    removed: Annotated[list[str], Field(description="With `since`: the references of what is gone.")]
    truncated: bool
    cut_by: Annotated[list[Limit], Field(description="Which limits left something out.")]
    cursor: Annotated[str, Field(description="Send it as `since` to get the changes only.")]


@operation(
    "ui.tree",
    did="read the controls of",
    needs={Capability.DESKTOP_OBSERVE},
    effect=Effect.OBSERVE,
    text=shapes.ELEMENTS,
    on="computer",
    deadline_s=20,
    facets=("accessibility",),
    examples=[
        Example("The focused window.", {"target": "focused"}, runs=False),
        Example("One application, deeper.", {"target": "Files", "options": {"maxDepth": 16}}, runs=False),
    ],
)
async def ui_tree(ctx: Context, target: str | Route | None = None, options: TreeOptions = TreeOptions()) -> UiTree:
    """The controls of an application, of a window, or of the `focused` window, each with a reference that acts take."""
    view = await view_of(ctx, target, options)
    nodes = view.nodes()
    what = f"{view.place.root.app} {view.place.root.path} {options.compact} {options.hidden}"
    cursors = ctx.use(Cursors)
    shown, removed = nodes, list[str]()
    if options.since is not None:
        shown, removed = cursors.changes(options.since, ctx.scope.id, what, nodes)
    ctx.note(nodes=len(nodes), sent=len(shown), truncated=bool(view.cut_by))
    return UiTree(
        app=view.place.app.name,
        pid=view.place.app.pid,
        window=view.place.title,
        nodes=shown,
        removed=removed,
        truncated=bool(view.cut_by),
        cut_by=list(view.cut_by),
        cursor=cursors.keep(ctx.scope.id, what, nodes),
    )


async def view_of(ctx: Context, target: str | Route | None, options: TreeOptions) -> View:
    """The outline of a request, its limits lowered to what this service allows."""
    if options.max_depth > MAX_DEPTH or options.max_nodes > MAX_NODES:
        ctx.warn(f"Limits are lowered to {MAX_DEPTH} levels and {MAX_NODES} nodes.")
    view = await read_view(
        ctx.computer,
        ctx.scope,
        ctx.use(References),
        target,
        limits=TreeLimits(max_nodes=_READ_NODES, time_s=6.0),
        max_depth=min(options.max_depth, MAX_DEPTH),
        max_lines=min(options.max_nodes, MAX_NODES),
        compact=options.compact,
        hidden=options.hidden,
        empty_cells=not options.compact,
    )
    if len(view.lines) <= 2:
        for sentence in (await ctx.computer.accessibility.hidden())[:3]:
            ctx.warn(sentence)
    return view

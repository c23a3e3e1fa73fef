"""browser.snapshot: what a page shows, as controls with references."""

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from computer_linker.operations.browser.paging import page_of
from computer_linker.providers.browser.page import give, look
from computer_linker.providers.refs import References
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation, shapes


class SnapshotOptions(Model):
    only_controls: Annotated[bool, Field(description="Leave out text and containers.")] = False
    max_nodes: Annotated[int, Field(ge=1, le=5000)] = 2000
    max_bytes: Annotated[int, Field(ge=1000, le=400_000, description="Of the outline.")] = 60_000


class PageNode(TypedDict):
    ref: str
    role: str
    name: str
    value: str | None
    states: list[str]
    depth: int


class PageSnapshot(Model):
    url: str
    title: str
    outline: Annotated[str, Field(description="The page in lines, each control with its reference.")]
    nodes: list[PageNode]
    truncated: bool


@operation(
    "browser.snapshot",
    did="looked at a page",
    needs={Capability.COMMAND_RUN},
    effect=Effect.OBSERVE,
    text=shapes.OUTLINE,
    boundary="sandboxed",
    examples=[Example("The controls of the open page.", {"options": {"onlyControls": True}}, runs=False)],
)
async def browser_snapshot(ctx: Context, options: SnapshotOptions = SnapshotOptions()) -> PageSnapshot:
    """What the open page shows: its controls with references that browser.click and browser.fill take.

    A reference stands for one element for as long as that is on the page, and is never given to another.
    """
    async with page_of(ctx, ("snapshot",)) as session:
        page = await look(session, ctx.scope, only_controls=options.only_controls)
    refs = give(ctx.use(References), ctx.scope, session, page)
    nodes = [
        PageNode(
            ref=refs[one.element.id],
            role=one.element.role,
            name=one.element.name,
            value=one.element.value,
            states=list(one.element.states),
            depth=one.depth,
        )
        for one in page.seen.values()
    ]
    outline = page.with_refs(refs)
    cut = outline.encode()[: options.max_bytes].decode("utf-8", "ignore")
    ctx.note(nodes=len(nodes), outlineBytes=len(outline))
    return PageSnapshot(
        url=page.url,
        title=page.title,
        outline=cut,
        nodes=nodes[: options.max_nodes],
        truncated=len(cut) < len(outline) or len(nodes) > options.max_nodes,
    )

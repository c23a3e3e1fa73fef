"""Runs a command in a view: the option, and what the view holds afterwards."""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated

from anyio.to_thread import run_sync
from pydantic import Field

from computer_linker.audit.command_line import command_preview
from computer_linker.errors import LinkError
from computer_linker.model.base import Model
from computer_linker.providers.views.reading import ViewReader
from computer_linker.providers.views.store import View, Views
from computer_linker.registry import Context

ViewOption = Annotated[
    bool | str,
    Field(
        description="Run on a view of the folder, which stays as it is until view.keep: true for a new view, or the id of one."
    ),
]


class ViewSummary(Model):
    """How many names a view would change."""

    view_id: str
    added: int
    changed: int
    removed: int


class CommandView:
    """The view of one command, created only when the command is about to start."""

    def __init__(self, ctx: Context, wanted: bool | str, command: str | Sequence[str]) -> None:
        self._ctx = ctx
        self._wanted = wanted
        self._command = command
        self._views = ctx.use(Views)
        self._view: View | None = None

    @property
    def id(self) -> str | None:
        return None if self._view is None else self._view.id

    async def hold(self) -> tuple[int, ...]:
        """Open the folders that take the changes."""
        ctx, views = self._ctx, self._views
        if isinstance(self._wanted, str):
            view = await run_sync(views.find, self._wanted, ctx.scope.id, ctx.principal)
        else:
            preview = command_preview(self._command)
            view = await run_sync(views.create, ctx.scope.id, ctx.principal, ctx.scope.roots, ctx.op, preview)
        views.begin(view)
        try:
            held = await run_sync(views.hold, view)
        except BaseException:
            views.end(view)
            raise
        self._view = view
        ctx.note(viewId=view.id)
        return held

    def ended(self) -> None:
        if self._view is not None:
            self._views.end(self._view)

    async def summary(self) -> ViewSummary | None:
        """What the view would change now."""
        if self._view is None:
            return None
        try:
            changes = await run_sync(ViewReader.of(self._ctx, self._view).changes)
        except LinkError as error:
            self._ctx.warn(f"The view could not be compared: {error.message}")
            return ViewSummary(view_id=self._view.id, added=0, changed=0, removed=0)
        found = Counter(change.action for _, change in changes)
        return ViewSummary(
            view_id=self._view.id,
            added=found["added"],
            changed=found["changed"] + found["renamed"],
            removed=found["removed"],
        )


def view_for(ctx: Context, wanted: bool | str, command: str | Sequence[str]) -> CommandView | None:
    """The view to run in; None where the caller wants none and the scope's policy asks for none."""
    if not wanted and ctx.scope.policy.outcome == "direct":
        return None
    return CommandView(ctx, wanted, command)

"""The approval preview of an act on an application."""

from typing import Protocol

from computer_linker.approvals.request import Preview
from computer_linker.providers.ui.shown import seen_app, seen_start
from computer_linker.registry import Context


class _Arguments(Protocol):
    @property
    def arguments(self) -> list[str]: ...


async def show_running(ctx: Context, target: str) -> Preview:
    """A running application with its windows."""
    seen = await seen_app(ctx.computer, target, ctx.scope.policy.excluded_applications)
    return Preview(tuple(seen.lines), seen.holds)


async def show_start(ctx: Context, target: str, input: _Arguments) -> Preview:
    """The program that would be started, with its arguments."""
    seen = await seen_start(ctx.computer, target, input.arguments)
    return Preview(tuple(seen.lines), seen.holds)

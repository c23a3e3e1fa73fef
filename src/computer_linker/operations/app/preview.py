"""The approval preview of an act on an application."""

from typing import Protocol

from computer_linker.policy.confirm import About
from computer_linker.providers.ui.apps_shown import seen_app, seen_start
from computer_linker.registry import Context


class _Arguments(Protocol):
    @property
    def arguments(self) -> list[str]: ...


async def show_running(ctx: Context, target: str) -> About:
    """A running application with its windows."""
    seen = await seen_app(ctx.computer, target, ctx.scope.policy.excluded_applications)
    return About(tuple(seen.lines), seen.holds)


async def show_start(ctx: Context, target: str, input: _Arguments) -> About:
    """The program that would be started, with its arguments."""
    seen = await seen_start(ctx.computer, target, input.arguments)
    return About(tuple(seen.lines), seen.holds)

"""notification.list: what applications showed to the person lately."""

from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import Field

from computer_linker.computer.facets.notifications import Notification
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation


class NotificationOptions(Model):
    max_results: Annotated[int, Field(gt=0, le=100)] = 20


class NotificationList(Model):
    notifications: Annotated[list[Notification], Field(description="The newest first.")]
    truncated: bool


@operation(
    "notification.list",
    did="read notifications",
    needs={Capability.NOTIFICATIONS_READ},
    effect=Effect.OBSERVE,
    on="computer",
    deadline_s=20,
    facets=("notifications",),
    examples=[Example("What was I told?", {"options": {"maxResults": 5}}, runs=False)],
)
async def notification_list(ctx: Context, options: NotificationOptions = NotificationOptions()) -> NotificationList:
    """List recent notices, the newest first. They are kept from the first call on, up to a hundred, in memory only."""
    excluded = ctx.scope.policy.excluded_applications
    found = [
        notice
        for notice in reversed(await ctx.computer.notifications.recent())
        if not any(fnmatchcase(notice.app.lower(), pattern.lower()) for pattern in excluded)
    ]
    ctx.note(notifications=len(found))
    return NotificationList(notifications=found[: options.max_results], truncated=len(found) > options.max_results)

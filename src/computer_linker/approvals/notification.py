"""Approver that shows a desktop notification with buttons."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio

from computer_linker.approvals.approvals import PERSON, Approver
from computer_linker.approvals.request import Answer, ApprovalRequest
from computer_linker.computer.base import Computer
from computer_linker.computer.facets.notifications import Questions
from computer_linker.errors import Aborted, TimedOut
from computer_linker.model.principal import Principal
from computer_linker.policy.visible_text import beginning
from computer_linker.services import Services

_MAX_SHOWN = 800
_ACTIONS = (("allow", "Allow once"), ("deny", "Do not allow"))
_ANSWERS: dict[str | None, Answer] = {"allow": "yes", "deny": "no"}


HoldDesktop = Callable[[Principal], AbstractAsyncContextManager[Any]]
"""Holds the desktop's device queue, so that no call acts there meanwhile."""


class NotificationApprover:
    """Shows a request as a notification. One too long to be shown whole can only be refused there: approval needs every byte.

    One notification at a time, however many requests wait.
    """

    def __init__(self, services: Services, hold_desktop: HoldDesktop) -> None:
        self._services, self._hold_desktop = services, hold_desktop
        self._one = anyio.Lock()

    async def find(self, asked: ApprovalRequest) -> Approver | None:
        """Return the approver for this request, if the desktop supports notifications."""
        computer = self._services.use(Computer)
        if not computer.capabilities().has("notifications"):
            return None
        notices = computer.notifications
        if not isinstance(notices, Questions):
            return None
        async with notices.question() as question:
            if question is None:
                return None

        async def ask(asked: ApprovalRequest) -> Answer | None:
            async with self._one:
                return await self._ask(notices, asked)

        return ask

    async def _ask(self, notices: Questions, asked: ApprovalRequest) -> Answer | None:
        summary = f"{asked.asker} wants {asked.op} in {asked.scope}"
        if len(asked.text) > _MAX_SHOWN:
            return await self._ask_to_refuse(notices, asked, summary)
        try:
            # No other call acts on the desktop meanwhile: a client must not press the button itself.
            async with self._hold_desktop(PERSON), notices.question() as question:
                if question is None:
                    return None
                return _ANSWERS.get(await question.ask(summary, asked.text, _ACTIONS))
        except (Aborted, TimedOut):
            return None
        raise AssertionError("a device queue that ends its body raises")

    async def _ask_to_refuse(self, notices: Questions, asked: ApprovalRequest, summary: str) -> Answer | None:
        """Show that a long request waits. A client that presses this button refuses itself, so the desktop stays free."""
        text = f"{beginning(asked.text, _MAX_SHOWN)} It can be allowed with: computer-linker approvals"
        async with notices.question() as question:
            if question is None:
                return None
            return "no" if await question.ask(summary, text, _ACTIONS[1:]) == "deny" else None

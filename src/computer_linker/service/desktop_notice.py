"""Approver that shows a desktop notification with buttons."""

from computer_linker.computer.base import Computer
from computer_linker.computer.facets.notifications import Questions
from computer_linker.dispatch.dispatcher import Dispatcher
from computer_linker.errors import Aborted, TimedOut
from computer_linker.policy.confirm import Asked
from computer_linker.policy.preview import beginning
from computer_linker.providers.approvals import PERSON, Answer, Approver
from computer_linker.services import Services

_MAX_SHOWN = 800
_ACTIONS = (("allow", "Allow once"), ("deny", "Do not allow"))
_ANSWERS: dict[str | None, Answer] = {"allow": "yes", "deny": "no"}


class NoticeApprover:
    """Shows a request as a notification. One too long to be shown whole can only be refused there: approval needs every byte."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def find(self, asked: Asked) -> Approver | None:
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

        async def ask(asked: Asked) -> Answer | None:
            return await self._ask(notices, asked)

        return ask

    async def _ask(self, notices: Questions, asked: Asked) -> Answer | None:
        summary = f"{asked.asker} wants {asked.op} in {asked.scope}"
        if len(asked.text) > _MAX_SHOWN:
            return await self._ask_to_refuse(notices, asked, summary)
        try:
            # No other call acts on the desktop meanwhile: a client must not press the button itself.
            queue = self._services.use(Dispatcher).queues.hold("desktop", PERSON, yields=False)
            async with queue, notices.question() as question:
                if question is None:
                    return None
                return _ANSWERS.get(await question.ask(summary, asked.text, _ACTIONS))
        except (Aborted, TimedOut):
            return None
        raise AssertionError("a device queue that ends its body raises")

    async def _ask_to_refuse(self, notices: Questions, asked: Asked, summary: str) -> Answer | None:
        """Show that a long request waits. A client that presses this button refuses itself, so the desktop stays free."""
        text = f"{beginning(asked.text, _MAX_SHOWN)} It can be allowed with: computer-linker approvals"
        async with notices.question() as question:
            if question is None:
                return None
            return "no" if await question.ask(summary, text, _ACTIONS[1:]) == "deny" else None

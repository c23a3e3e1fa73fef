"""Who calls the dispatcher, and where it sends calls for other computers."""

from dataclasses import dataclass
from typing import Protocol

from computer_linker.approvals.approvals import Approver, Yes
from computer_linker.model.envelope import Call, Reply
from computer_linker.model.principal import Principal
from computer_linker.registry.context import Progress


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller, two callbacks to it while the call runs (progress and questions), and a yes that it comes with."""

    principal: Principal
    report: Progress | None
    ask: Approver | None
    yes: Yes | None = None


class Routes(Protocol):
    """Routes calls to other computers."""

    async def call(self, computer: str, call: Call, report: Progress | None) -> Reply: ...

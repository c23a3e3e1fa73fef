"""A person's answer: who gave it, over which channel, and what it is used for."""

from typing import NamedTuple

from computer_linker.approvals.request import ApprovalRequest
from computer_linker.model.event import Approval, Way
from computer_linker.model.principal import Principal


class Answerer(NamedTuple):
    """Who answers, and over which channel."""

    who: Principal
    way: Way


class Yes(NamedTuple):
    """An approval: a person's answer, the request it is used for, and the standing approval that it comes from."""

    approval: Approval | None
    asked: ApprovalRequest
    standing: str | None = None

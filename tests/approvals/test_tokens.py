"""One token, one success: however many spend it at once, and whatever is altered."""

import random
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from computer_linker.approvals.approvals import Approvals
from computer_linker.approvals.store import ApprovalStore
from computer_linker.errors import ConfirmRequired
from computer_linker.model.effect import Effect
from computer_linker.model.envelope import Call
from computer_linker.model.scope import Rights, Scope
from computer_linker.operations.desktop.type_text import desktop_type_text
from computer_linker.policy.digest import canonical_request, digest_of
from support.road import LOCAL

pytestmark = pytest.mark.anyio

OP: Rights = desktop_type_text
SCOPE = Scope(id="desk", type="computer")
CALL = Call("desk", "desktop.type_text", "e1.abc", {"text": "ls -la"}, {"clearBefore": True})


@pytest.mark.parametrize("times", [100, pytest.param(1000, marks=pytest.mark.soak)])
async def test_fifty_at_once_give_one_success_every_time(tmp_path: Path, times: int) -> None:
    assert OP.effect is Effect.ACT
    approvals = Approvals(ApprovalStore(tmp_path))
    for _ in range(times):
        token, asked = await approvals.issue(CALL, OP, SCOPE, LOCAL, 60)
        approvals.answer(asked.id, "yes")
        spent = replace(CALL, confirm=token)
        done: list[str] = []

        async def spend(call: Call, done: list[str]) -> None:
            await anyio.lowlevel.checkpoint()
            try:
                await approvals.confirm(call, OP, SCOPE, LOCAL, None)
            except ConfirmRequired:
                done.append("refused")
            else:
                done.append("spent")

        async with anyio.create_task_group() as group:
            for _ in range(50):
                group.start_soon(spend, spent, done)
        assert (done.count("spent"), done.count("refused")) == (1, 49)


def altered(chance: random.Random) -> tuple[Any, ...]:
    """The request with one thing changed: a byte of a text, a flag, a name, the target, the scope."""
    text = list("ls -la")
    at = chance.randrange(len(text))
    match chance.randrange(6):
        case 0:
            text[at] = chr(ord(text[at]) ^ (1 << chance.randrange(5)))
        case 1:
            text.insert(at, chance.choice("\u200b\u202e\n;&| \0"))
        case 2:
            del text[at]
        case 3:
            return (
                "desk",
                OP.name,
                "e1.abc",
                {"text": "ls -la"},
                {"clearBefore": chance.choice([False, 1, "true", None])},
            )
        case 4:
            return ("desk", OP.name, f"e{chance.randrange(2, 99)}.abc", {"text": "ls -la"}, {"clearBefore": True})
        case 5:
            extra = {"text": "ls -la", f"x{chance.randrange(99)}": chance.random()}
            return (chance.choice(["desk", "desk2"]), OP.name, "e1.abc", extra, {"clearBefore": True})
    return ("desk", OP.name, "e1.abc", {"text": "".join(text)}, {"clearBefore": True})


@pytest.mark.parametrize("count", [10_000, pytest.param(100_000, marks=pytest.mark.soak)])
async def test_altered_requests_are_all_refused(tmp_path: Path, count: int) -> None:
    approvals, chance, refused = Approvals(ApprovalStore(tmp_path)), random.Random(11), 0
    right = digest_of(canonical_request("desk", OP.name, CALL.target, CALL.input, CALL.options))
    while refused < count:
        token, asked = await approvals.issue(CALL, OP, SCOPE, LOCAL, 60)
        approvals.answer(asked.id, "yes")
        # Nine wrong ones: the tenth in a row would take everything that waits for this caller.
        for _ in range(9):
            request = altered(chance)
            with pytest.raises(ConfirmRequired):
                approvals.ledger.spend_token(token, LOCAL, digest_of(canonical_request(*request)), time.monotonic())
            refused += 1
        approvals.ledger.spend_token(token, LOCAL, right, time.monotonic())

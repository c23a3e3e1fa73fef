"""A request whose time runs out is answered `no_answer`, whichever clock of the event loop ends it first."""

from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from computer_linker.approvals.approvals import Approvals
from computer_linker.approvals.request import Answer, ApprovalRequest
from computer_linker.approvals.store import ApprovalStore
from computer_linker.errors import NoAnswer
from computer_linker.model.envelope import Call
from computer_linker.model.scope import Rights, Scope
from computer_linker.operations.file.write import file_write
from computer_linker.system.event_loop import new_event_loop
from support.road import LOCAL, folder_scope

pytestmark = pytest.mark.anyio
CALL = Call("app", "file.write", "notes.txt", {"content": "x"})
OP: Rights = file_write


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, object]]:
    """The loop of the service."""
    return ("asyncio", {"loop_factory": new_event_loop})


async def test_silence_of_an_approver_is_never_called_a_missing_approver(tmp_path: Path) -> None:
    approvals, scope = Approvals(ApprovalStore(tmp_path)), Scope.from_wire(folder_scope(tmp_path, confirm="all"))
    silent: list[str] = []

    async def person(_: ApprovalRequest) -> Answer | None:
        await anyio.sleep_forever()
        return None

    async def call(number: int) -> None:
        who, one = replace(LOCAL, session=f"session-{number}"), replace(CALL, input={"content": str(number)})
        token, _ = await approvals.issue(one, OP, scope, who, 0.2 + number * 0.0003)
        with pytest.raises(NoAnswer):
            await approvals.confirm(replace(one, confirm=token), OP, scope, who, None)
        silent.append(token)

    async with approvals.attached("tests", person), anyio.create_task_group() as group:
        for number in range(50):
            group.start_soon(call, number)
    assert len(silent) == 50 and not approvals.waiting()

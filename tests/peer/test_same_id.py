"""A new computer that calls itself by the id of a removed one gets nothing of it (F19)."""

from pathlib import Path

import pytest

from computer_linker.model.principal import account_of
from computer_linker.transports.peer.table import PeerTable
from support.pair import Pair, open_pair
from support.road import OWNER

pytestmark = pytest.mark.anyio


async def _pair_anew(pair: Pair) -> None:
    """Unpair the desk, give it another key under its old id, and pair it again."""
    await pair.server.forget("desk-id")
    await pair.routes.aclose()
    pair.desk.app.services.use(PeerTable).remove("laptop")
    for place in pair.desk.home.glob("peer-*"):
        place.unlink()
    await pair.paired()


async def test_a_new_key_under_a_removed_id_is_another_principal(tmp_path: Path) -> None:
    """Found: it undid what the removed computer had written, and read its history."""
    async with open_pair(tmp_path) as pair:
        await pair.paired()
        before = pair.caller
        written = await pair.desk.call("file.write", "of-a.txt", scope="laptop/app", input={"content": "kept"})
        assert written["ok"], written
        await _pair_anew(pair)
        assert pair.caller != before
        for given in ({"operationId": written["operationId"]}, {"operationId": "last"}, {}):
            undone = await pair.desk.call("file.undo", scope="laptop/app", input=given)
            assert undone["ok"] is False, undone
        assert (pair.laptop.root / "of-a.txt").read_text() == "kept"
        seen = await pair.desk.call("history.timeline", scope="laptop/app")
        assert "file.write" not in {event["op"] for event in seen["data"]["events"]}
        events = (await pair.laptop.data("history.timeline", principal=OWNER))["events"]
        assert {before} == {account_of(event["principal"]) for event in events if event["op"] == "file.write"}

"""An artifact belongs to the principal that kept it: another client neither reads, lists nor pushes it out."""

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from computer_linker.artifacts.store import ArtifactStore, Bounds, Filter, Owner
from computer_linker.errors import NotFound
from computer_linker.model.principal import Principal
from support.road import LOCAL, OWNER, Road

pytestmark = pytest.mark.anyio

OTHERS = [
    replace(LOCAL, id="oauth:other", proof="oauth", grants=frozenset({"app"})),
    replace(LOCAL, id="owner-token", proof="owner_token"),
    replace(LOCAL, id="peer:other", proof="peer", grants=frozenset({"app"})),
]


@pytest.mark.parametrize("other", OTHERS, ids=lambda one: one.proof)
async def test_another_client_neither_reads_nor_lists_an_artifact(tmp_path: Path, other: Principal) -> None:
    async with Road.open(tmp_path) as road:
        kept = await road.data("artifact.attach", input={"text": "mine alone", "kind": "console_logs"})
        mine = kept["artifact"]["id"]
        refused = await road.call("artifact.read", mine, principal=other)
        assert refused["error"]["code"] == "not_found"
        unknown = await road.call("artifact.read", "art_" + "0" * 24, principal=other)
        assert refused["error"]["message"] == unknown["error"]["message"], "its existence is not for others to know"
        for given in ({}, {"session": LOCAL.session}, {"kind": "console_logs"}):
            assert (await road.data("artifact.list", input=given, principal=other))["artifacts"] == []
        assert (await road.data("artifact.read", mine))["text"] == "mine alone"
        assert [one["id"] for one in (await road.data("artifact.list"))["artifacts"]] == [mine]
        assert (await road.data("artifact.read", mine, principal=OWNER))["text"] == "mine alone"
        assert len((await road.data("artifact.list", principal=OWNER))["artifacts"]) == 1


async def test_a_batch_step_reads_no_artifact_of_another(tmp_path: Path) -> None:
    async with Road.open(tmp_path) as road:
        kept = await road.data("artifact.attach", input={"text": "mine alone", "kind": "console_logs"})
        steps = {"operations": [{"op": "artifact.read", "target": kept["artifact"]["id"]}, {"op": "artifact.list"}]}
        ran = await road.call("batch.run", input=steps, options={"stopOnError": False}, principal=OTHERS[1])
        assert "mine alone" not in str(ran)
        assert kept["artifact"]["id"] not in str(ran["data"]["results"][1]), ran


@pytest.mark.parametrize("bounds", [Bounds(scope_count=20), Bounds(scope_bytes=2000)], ids=["count", "bytes"])
def test_a_flood_pushes_out_nothing_of_another_principal(tmp_path: Path, bounds: Bounds) -> None:
    store = ArtifactStore(tmp_path, bounds)
    honest, flooding = Owner("app", "honest", "s", "o"), Owner("app", "flooding", "s", "o")
    mine = [store.add(b"%0100d" % n, "document", "text/plain", "t", honest) for n in range(5)]
    made = [store.add(b"%0100d" % n, "document", "text/plain", "t", flooding) for n in range(100, 160)]
    kept = store.listed(Filter("app"), 99)
    assert {one.id for one in mine} < {one.id for one in kept}
    assert [one.id for one in kept if one.principal == "flooding"] == [one.id for one in reversed(made[-15:])]
    many = [store.add(b"%0100d" % n, "document", "text/plain", "t", honest) for n in range(200, 230)]
    counts = [len(store.listed(Filter("app", principal=who), 99)) for who in ("honest", "flooding")]
    assert counts == [10, 10] and store.find(many[-1].id, "app", "honest")
    store.close()


def test_an_older_store_is_the_owners_alone(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path)
    made = store.add(b"old", "document", "text/plain", "t", Owner("app", "p", "s", "o"))
    store.close()
    with sqlite3.connect(tmp_path / "artifacts.db") as db:
        db.execute("ALTER TABLE artifacts DROP COLUMN principal")
    beside = ArtifactStore(tmp_path, only_to_read=True)
    assert beside.find(made.id, None).principal == ""
    beside.close()
    store = ArtifactStore(tmp_path)
    assert store.find(made.id, "app").principal == ""
    with pytest.raises(NotFound):
        store.find(made.id, "app", "p")
    store.close()

"""The one road: what it answers, what it records, and that it never lets an exception through."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from computer_linker.computer.simulated import SimulatedComputer
from computer_linker.model.base import Model
from computer_linker.model.effect import Effect
from computer_linker.model.envelope import Call
from computer_linker.registry import Context, Example, operation
from computer_linker.registry.operation import Operation
from support.road import LOCAL, Road, computer_scope, folder_scope

pytestmark = pytest.mark.anyio


class Nothing(Model):
    pass


def added(road: Road, op: Operation) -> None:
    """An operation of a test's own beside the real ones, on the real road."""
    catalog = road.app.catalog
    known = replace(catalog, by_name={**catalog.by_name, op.name: op})
    road.app.dispatcher.catalog = known


@operation("test.crash", effect=Effect.OBSERVE, on="any", examples=[Example("", {})])
async def crash(ctx: Context) -> Nothing:
    """Fail in a way nobody foresaw."""
    raise ZeroDivisionError("secret detail")


@operation("test.forever", effect=Effect.ACT, on="computer", deadline_s=0.2, examples=[Example("", {})])
async def forever(ctx: Context) -> Nothing:
    """Never end."""
    await anyio.sleep_forever()
    return Nothing()


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Road]:
    """A road with a simulated desktop, whose acts take turns, and `forever` on it."""
    async with Road.open(tmp_path, [computer_scope("app")], SimulatedComputer()) as opened:
        added(opened, forever)
        yield opened


async def history(road: Road) -> list[dict[str, object]]:
    envelope = await road.data("history.timeline", options={"limit": 100})
    events: list[dict[str, object]] = envelope["events"]
    return events


async def test_an_unforeseen_failure_tells_no_details(road: Road) -> None:
    added(road, crash)
    envelope = await road.call("test.crash")
    assert envelope["error"]["code"] == "execution_failed"
    assert "secret" not in str(envelope)
    assert "ZeroDivision" not in str(envelope)
    assert (await history(road))[-1]["errorCode"] == "execution_failed"


async def test_a_deadline_ends_an_operation_and_frees_its_lane(desk: Road) -> None:
    for _ in range(2):
        envelope = await desk.call("test.forever")
        assert (envelope["error"]["code"], envelope["error"]["retryable"]) == ("timeout", True)


async def test_a_cancelled_call_is_recorded_as_aborted(desk: Road) -> None:
    with anyio.move_on_after(0.05):
        await desk.call("test.forever")
    last = (await history(desk))[-1]
    assert (last["op"], last["ok"], last["errorCode"]) == ("test.forever", False, "aborted")
    assert desk.app.dispatcher.under_way == 0


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ([], "invalid_request"),
        ({}, "invalid_request"),
        ({"scope": "app"}, "invalid_request"),
        ({"scope": "app", "op": "file.stat", "target": "a", "path": "b"}, "invalid_request"),
        ({"scope": 1, "op": "file.stat"}, "invalid_request"),
        ({"scope": "nope", "op": "file.stat", "target": "a"}, "unknown_scope"),
        ({"scope": "app", "op": "file.stats", "target": "a"}, "unknown_operation"),
        ({"scope": "app", "op": "file.stat", "target": {"path": "a"}}, "invalid_request"),
        ({"scope": "app", "op": "file.stat", "target": "a", "options": {"hsah": True}}, "invalid_request"),
        ({"scope": "app", "op": "file.stat", "target": "a", "options": {"hash": "true"}}, "invalid_request"),
        ({"scope": "app", "op": "file.read", "target": "a", "options": {"max_bytes": 5}}, "invalid_request"),
        ({"scope": "app", "op": "file.stat", "target": "a", "confirm": {"phrase": "CONFIRM"}}, "invalid_request"),
        ({"scope": "app", "op": "batch.run", "input": {"operations": []}}, "invalid_request"),
    ],
)
async def test_bad_input_has_its_code_and_is_recorded(road: Road, value: object, code: str) -> None:
    reply = await road.app.dispatcher.call_wire(value, LOCAL)
    assert not reply.ok
    assert reply.envelope["error"]["code"] == code
    assert len(reply.envelope["operationId"]) == 26
    stored = [event for event in await history(road) if event["operationId"] == reply.envelope["operationId"]]
    assert code in ("unknown_scope", "invalid_request") or stored[0]["errorCode"] == code


async def test_without_the_capability_nothing_about_the_request_is_learnt(tmp_path: Path) -> None:
    scope = {**folder_scope(tmp_path / "root"), "capabilities": ["history:read"]}
    async with Road.open(tmp_path, [scope]) as road:
        envelope = await road.call("file.read", {"not": "even a path"}, options={"nonsense": 1})
        assert envelope["error"]["code"] == "permission_denied"
        assert envelope["error"]["details"]["missing"] == ["fs:read"]
        assert envelope["error"]["details"]["ownerCanAllow"] == "computer-linker scope edit app --allow fs:read"
        run = await road.call("command.run", input={"command": ["true"]})
        assert run["error"]["details"]["ownerCanAllow"] == "computer-linker setup FOLDER --shell"
        # No right of a folder scope would give it a clipboard.
        assert "ownerCanAllow" not in (await road.call("clipboard.read"))["error"]["details"]


async def test_explain_tells_without_doing(road: Road) -> None:
    allowed = await road.data(
        "computer.explain", input={"op": "file.write", "target": "a.txt", "input": {"content": "x"}}
    )
    assert (allowed["allowed"], allowed["needs"]) == (True, ["fs:write"])
    assert not (road.root / "a.txt").exists()
    for target in ("../x", ".git/config", ".env"):
        refused = await road.data(
            "computer.explain", input={"op": "file.write", "target": target, "input": {"content": "x"}}
        )
        assert refused["allowed"] is False
    assert (await road.data("computer.explain", input={"op": "screen.capture"}))["missing"] == ["screen:capture"]
    bare = await road.data("computer.explain", input={"op": "file.read"})
    assert bare["allowed"] is True, "without a target it is asked whether the operation may be used at all"


async def test_the_audit_refusing_means_nothing_happens(tmp_path: Path) -> None:
    async with Road.open(tmp_path) as road:

        class FullDisk:
            """An audit that cannot write its intent: what a full disk does."""

            def __getattr__(self, name: str) -> object:
                return getattr(inner, name)

            def intent(self, event: object) -> None:
                raise OSError(28, "No space left on device")

        inner = road.app.dispatcher.audit
        road.app.dispatcher.audit = FullDisk()  # type: ignore[assignment]
        reply = await road.app.dispatcher.call(Call("app", "file.create", "new.txt", {"content": "x"}), LOCAL)
        assert not reply.ok
        assert list(road.root.iterdir()) == []

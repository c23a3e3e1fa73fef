"""What the bridge refuses by itself, before the dispatcher, is in the history like any other refusal."""

import os
from typing import Any

import pytest

from support.bridge_host import Host
from support.pair import events_of
from support.road import Road

pytestmark = pytest.mark.anyio


async def refusals(host: Host) -> list[dict[str, Any]]:
    road = Road(host.app, host.workspace, host.home)
    ops = ("", "desktop.click", "desktop.observe", "desktop.abort")
    found = [event for op in ops for event in await events_of(road, op)]
    return [event for event in found if not event["ok"]]


@pytest.mark.parametrize(
    ("method", "params", "rule"),
    [
        ("desktop.nothing", {}, "DESKTOP_INVALID_REQUEST"),
        ("desktop.click", {"unknown": 1}, "DESKTOP_INVALID_REQUEST"),
        ("desktop.observe", {"confirm": {"token": "x"}}, "DESKTOP_INVALID_REQUEST"),
        ("desktop.abort", {"executionId": "none"}, "DESKTOP_INVALID_REQUEST"),
    ],
)
async def test_a_request_that_does_not_reach_the_dispatcher_is_recorded(
    host: Host, method: str, params: dict[str, Any], rule: str
) -> None:
    """Found: such a request left no event."""
    await host.client.code(method, **params)
    (event,) = await refusals(host)
    assert event["principal"].startswith("bridge:") and not event["ok"], event
    assert rule in str(event["reason"]) or event["errorCode"] == "invalid_request"


async def test_a_workspace_outside_is_recorded(host: Host) -> None:
    meta = host.client.meta() | {"workspacePath": os.fspath(host.home)}
    assert await host.client.code("desktop.observe", meta=meta) == "DESKTOP_WORKSPACE_FORBIDDEN"
    (event,) = await refusals(host)
    assert event["errorCode"] == "permission_denied", event


async def test_health_and_doctor_are_recorded_and_paused(host: Host) -> None:
    """Found: both were answered while everything is paused, and left no event."""
    road = Road(host.app, host.workspace, host.home)
    await host.client.result("desktop.health")
    (event,) = await events_of(road, "desktop.health")
    assert event["ok"]
    host.app.dispatcher.pause.begin(None)
    for method in ("desktop.health", "desktop.doctor"):
        assert await host.client.code(method) == "DESKTOP_ABORTED"

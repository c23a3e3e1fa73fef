"""A notice on the desktop asks the person; only its own buttons answer, and no client can press them meanwhile."""

import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from dbus_fast import Message
from dbus_fast.aio import MessageBus

from computer_linker.approvals.approvals import Approvals
from computer_linker.approvals.terminal import TerminalApprovals
from computer_linker.computer.base import Computer
from computer_linker.computer.local.linux.notifications import BusNotifications
from computer_linker.computer.local.probe import this_computer
from support.desktop import _start_bus, stop
from support.notice_area import NoticeArea
from support.pair import events_of
from support.road import Road, folder_scope
from support.waiting import until, until_awaited

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(shutil.which("dbus-daemon") is None, reason="not installed: dbus-daemon"),
]


@pytest.fixture
async def address() -> AsyncIterator[str]:
    process, where = _start_bus({"PATH": os.environ["PATH"]})
    yield where
    stop(process)


def with_notices(address: str) -> Computer:
    computer = this_computer({})
    computer.provide("notifications", BusNotifications({"DBUS_SESSION_BUS_ADDRESS": address}), backend="session bus")
    return computer


@pytest.fixture
async def road(tmp_path: Path, address: str) -> AsyncIterator[Road]:
    scopes = [folder_scope(tmp_path / "root", confirm="all")]
    async with Road.open(tmp_path, scopes, with_notices(address)) as opened:
        (opened.root / "keep.txt").write_text("kept")
        opened.app.services.use(TerminalApprovals)
        yield opened


async def delete(road: Road, into: list[dict[str, Any]]) -> None:
    into.append(await road.call("file.delete", "keep.txt"))


@pytest.mark.parametrize(("button", "ok"), [("allow", True), ("deny", False), (None, False)])
async def test_the_button_decides(road: Road, address: str, button: str | None, ok: bool) -> None:
    answers: list[dict[str, Any]] = []
    async with NoticeArea.open(address) as area, anyio.create_task_group() as group:
        group.start_soon(delete, road, answers)
        notice = await area.next()
        assert "file.delete" in notice.summary and '"keep.txt"' in notice.body and "sha256" in notice.body
        assert notice.actions == ["allow", "Allow once", "deny", "Do not allow"]
        assert not road.app.dispatcher.queues.is_idle("desktop", 0), "nobody acts on the desktop while it shows"
        area.press(notice.number, button)
    assert answers[0]["ok"] is ok
    assert (road.root / "keep.txt").exists() is not ok
    (event,) = await events_of(road, "file.delete")
    said = {"allow": "yes", "deny": "no", None: None}[button]
    assert (event["approval"] or {"said": None})["said"] == said
    if said is not None:
        (answer,) = await events_of(road, f"approvals.{button}")
        assert (answer["summary"]["way"], event["approval"]["answer"]) == ("notification", answer["operationId"])


async def test_a_signal_of_anybody_else_is_no_answer(road: Road, address: str) -> None:
    answers: list[dict[str, Any]] = []
    async with NoticeArea.open(address) as area, anyio.create_task_group() as group:
        group.start_soon(delete, road, answers)
        notice = await area.next()
        await NoticeArea.forge(address, notice.number)
        area.press(notice.number, "deny")
    assert answers[0]["error"]["code"] == "denied_by_person"
    assert (road.root / "keep.txt").exists()


async def test_markup_in_a_request_is_shown_as_it_is(road: Road, address: str) -> None:
    async with NoticeArea.open(address) as area, anyio.create_task_group() as group:
        (road.root / "<b>harmless<b>.txt").write_text("kept")
        group.start_soon(road.call, "file.delete", "<b>harmless<b>.txt")
        notice = await area.next()
        assert "&lt;b&gt;harmless" in notice.body and "<b>" not in notice.body
        area.press(notice.number, "deny")


async def test_many_requests_come_one_notice_at_a_time(road: Road, address: str) -> None:
    waiting = road.app.services.use(Approvals)
    async with NoticeArea.open(address) as area, anyio.create_task_group() as group:
        for number in range(5):
            group.start_soon(road.call, "file.mkdir", f"made-{number}")
        first = await area.next()
        await until(lambda: len(waiting.waiting()) == 5)
        for _ in range(4):
            assert area.shown == first.number, "the next only when this one was answered"
            area.press(first.number, "deny")
            first = await area.next()
        area.press(first.number, "deny")
    assert [path.name for path in road.root.iterdir()] == ["keep.txt"]


async def test_without_a_notice_area_the_answer_comes_at_once(road: Road) -> None:
    with anyio.fail_after(60):
        refused = await road.call("file.delete", "keep.txt")
    assert "approveWith" in refused["error"]["details"]
    assert (road.root / "keep.txt").exists()


async def test_a_token_that_waits_is_asked_about_when_it_is_used(road: Road, address: str) -> None:
    answers: list[dict[str, Any]] = []
    issued = await road.data("confirm.issue", input={"op": "file.delete", "target": "keep.txt"})

    async def spend() -> None:
        answers.append(await road.call("file.delete", "keep.txt", confirm={"token": issued["token"]}))

    async with NoticeArea.open(address) as area, anyio.create_task_group() as group:
        group.start_soon(spend)
        area.press((await area.next()).number, "allow")
    assert answers[0]["ok"]
    assert not (road.root / "keep.txt").exists()


async def test_what_one_client_asks_the_owner_is_no_notice_for_others(road: Road, address: str) -> None:
    """Found: notification.list showed every client the requests of all others, with their contents."""
    answers: list[dict[str, Any]] = []
    notices = road.app.computer.notifications
    async with NoticeArea.open(address) as area, anyio.create_task_group() as group:
        assert await notices.recent() == []
        group.start_soon(delete, road, answers)
        notice = await area.next()
        other = await MessageBus(bus_address=address).connect()
        body = ["Mail", 0, "", "a letter", "hello", [], {}, -1]
        await other.call(
            Message(
                destination="org.freedesktop.Notifications", path="/org/freedesktop/Notifications",
                interface="org.freedesktop.Notifications", member="Notify", signature="susssasa{sv}i", body=body,
            )
        )  # fmt: skip
        other.disconnect()
        area.press(notice.number, "deny")
    await until_awaited(notices.recent)
    assert [(one.app, one.summary) for one in await notices.recent()] == [("Mail", "a letter")]

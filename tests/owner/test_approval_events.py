"""The history says of each approved call who said yes, by which way, and where that answer is; denied and unanswered differ."""

import csv
import io
import json
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from computer_linker.approvals.approvals import Approvals
from computer_linker.approvals.request import Answer, ApprovalRequest
from computer_linker.approvals.store import AllowedClient
from support.commands import command
from support.events import owners_history
from support.oauth import Browser
from support.pair import events_of
from support.road import LOCAL, Road, folder_scope
from support.service import Service, serving, wait_for
from support.terminal_person import person_at_terminal


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("answers")
    with serving(folder, scopes=[folder_scope(folder / "root", confirm="all")], approvalPage=True) as running:
        yield running


@pytest.fixture
async def road(tmp_path: Path) -> AsyncIterator[Road]:
    async with Road.open(tmp_path, [folder_scope(tmp_path / "root", confirm="all")]) as opened:
        yield opened


def cli(service: Service, *words: str) -> str:
    done = command(service.home, *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def write(service: Service, name: str) -> dict[str, Any]:
    http = service.http()
    try:
        request = {"scope": "app", "op": "file.write", "target": name, "input": {"content": "x"}}
        return http.control("computer_operation", **request)
    finally:
        http.close()


def by_id(service: Service, operation_id: str) -> dict[str, Any]:
    """The event; another process finds it in the history a moment after the answer came."""
    found: list[dict[str, Any]] = wait_for(
        lambda: [event for event in owners_history(service.home, 500) if event["operationId"] == operation_id]
    )
    return found[0]


def queried(service: Service, query: str) -> list[str]:
    return [event["operationId"] for event in json.loads(cli(service, "history", "--json", "--query", query))["events"]]


def check_approved(service: Service, call: dict[str, Any], way: str, extent: str = "once") -> dict[str, Any]:
    """The call's event and its answer's agree; the answer's event."""
    assert call["ok"], call
    given = by_id(service, call["operationId"])["approval"]
    answer = by_id(service, given["answer"])
    assert given == {
        "said": "yes",
        "by": answer["principal"],
        "way": way,
        "answer": answer["operationId"],
        "extent": extent,
    }
    assert (answer["op"], answer["ok"], answer["effect"]) == ("approvals.allow", True, "confirmed")
    assert (answer["summary"]["way"], answer["summary"]["operation"]) == (way, call["op"])
    return answer


def test_a_yes_at_the_terminal(service: Service) -> None:
    asked = write(service, "one.txt")["error"]["details"]
    cli(service, "approvals", "allow", asked["approvalId"])
    call = write(service, "one.txt")
    answer = check_approved(service, call, "terminal")
    assert answer["summary"]["asked"] == asked["approvalId"] and answer["summary"]["digest"] == asked["digest"]
    assert queried(service, "approved:terminal op:file.write") == [call["operationId"]]
    assert queried(service, f'approved-by:"{answer["principal"]}" op:file.write') == [call["operationId"]]
    assert queried(service, "approved:page op:file.write") == []
    shown = json.loads(cli(service, "history", "show", call["operationId"], "--json"))["approval"]
    assert shown.startswith("approved by owner (terminal"), shown
    rows = list(csv.DictReader(io.StringIO(cli(service, "history", "export", "--format", "csv"))))
    (row,) = [row for row in rows if row["operationId"] == call["operationId"]]
    assert (row["approval.said"], row["approval.way"], row["approval.by"]) == ("yes", "terminal", answer["principal"])
    cli(service, "history", "verify")


def test_a_no_at_the_terminal_is_told_from_no_answer(service: Service) -> None:
    with person_at_terminal(service, "n"):
        denied = write(service, "three.txt")
    assert denied["error"]["code"] == "denied_by_person" and denied["error"]["details"]["way"] == "terminal"
    event = by_id(service, denied["operationId"])
    assert (event["decision"], event["reason"]) == ("ask", "A person said no to file.write.")
    assert (event["approval"]["said"], event["approval"]["way"]) == ("no", "terminal")
    assert by_id(service, event["approval"]["answer"])["op"] == "approvals.deny"
    assert denied["operationId"] not in queried(service, "approved:terminal")

    def unheard() -> list[dict[str, Any]]:
        """Refused with no one there: the service hears a moment later that the terminal is gone."""
        told = write(service, "four.txt")
        assert told["error"]["details"]["answer"] == "none"
        return [] if "left without an answer" in told["error"]["message"] else [told]

    (absent,) = wait_for(unheard)
    event = by_id(service, absent["operationId"])
    assert (
        event["approval"] is None
        and "no approver is there to be asked" in event["reason"]
        and event["errorCode"] == "confirm_required"
    )
    assert not (service.root / "three.txt").exists() and not (service.root / "four.txt").exists()


def test_a_yes_on_the_page(service: Service) -> None:
    refused = write(service, "two.txt")
    browser = Browser(service.base)
    link = json.loads(cli(service, "approvals", "phone", "--json"))["url"]
    assert browser.send("GET", "/approve/" + link.rpartition("/")[2])[0] == 303
    page = browser.send("GET", "/approve")[2]
    csrf = re.search(r'name="csrf" value="([^"]+)"', page)
    assert csrf is not None
    form = {"id": refused["error"]["details"]["approvalId"], "answer": "allow", "csrf": csrf[1]}
    assert browser.send("POST", "/approve", form)[0] == 303
    answer = check_approved(service, write(service, "two.txt"), "page")
    assert answer["principal"] == "page:127.0.0.1"


@pytest.mark.anyio
async def test_no_answer_in_time_is_neither_a_yes_nor_a_no(road: Road) -> None:
    async def silent(asked: ApprovalRequest) -> Answer | None:
        await anyio.sleep_forever()
        return None

    wanted = {"op": "file.write", "target": "late.txt", "input": {"content": "x"}}
    issued = await road.data("confirm.issue", input=wanted, options={"ttlSeconds": 1})
    async with road.app.services.use(Approvals).attached("terminal", silent):
        with anyio.fail_after(30):
            answer = await road.call(
                "file.write", "late.txt", input={"content": "x"}, confirm={"token": issued["token"]}
            )
    assert answer["error"]["code"] == "no_answer"
    assert answer["error"]["details"]["answer"] == "none"
    (event,) = await events_of(road, "file.write")
    assert (event["approval"], event["errorCode"]) == (None, "no_answer") and "No answer came" in event["reason"]
    assert not (road.root / "late.txt").exists()


@pytest.mark.anyio
@pytest.mark.parametrize("choice", ["yes", "shape"])
async def test_a_yes_in_the_dialog_of_an_allowed_client_is_for_one_call(road: Road, choice: Answer) -> None:
    asked: list[ApprovalRequest] = []

    async def dialog(question: ApprovalRequest) -> Answer | None:
        asked.append(question)
        return choice

    road.app.services.use(Approvals).store.add(AllowedClient(name=str(LOCAL.client), allowed_at="now"))
    for name in ("a.txt", "b.txt"):
        value = {"scope": "app", "op": "file.write", "target": name, "input": {"content": "x"}}
        assert (await road.app.dispatcher.call_wire(value, LOCAL, None, dialog)).ok
    answers = {event["operationId"]: event for event in await events_of(road, "approvals.allow")}
    assert len(answers) == len(asked) == 2
    given = [event["approval"] for event in await events_of(road, "file.write")]
    assert [one["extent"] for one in given] == ["once", "once"]
    for one in given:
        answer = answers[one["answer"]]
        assert (one["by"], one["way"], answer["principal"]) == (LOCAL.client, "dialog", LOCAL.id)
        assert (answer["client"], answer["summary"]["way"]) == (LOCAL.client, "dialog")


@pytest.mark.anyio
async def test_a_no_in_the_clients_dialog(road: Road) -> None:
    async def dialog(question: ApprovalRequest) -> Answer | None:
        return "no"

    value = {"scope": "app", "op": "file.mkdir", "target": "folder"}
    reply = await road.app.dispatcher.call_wire(value, LOCAL, None, dialog)
    assert reply.envelope["error"]["details"]["answer"] == "no"
    (event,), (answer,) = await events_of(road, "file.mkdir"), await events_of(road, "approvals.deny")
    assert (event["approval"]["said"], event["approval"]["answer"]) == ("no", answer["operationId"])
    assert not (road.root / "folder").exists()


@pytest.mark.anyio
async def test_a_no_that_a_repeated_call_brings_is_recorded_once(road: Road) -> None:
    """2026-07-28: the call ends with the question, and comes again with the answer."""
    from computer_linker.errors import ConfirmRequired, DeniedByPerson
    from computer_linker.transports.mcp.dialog import ask_by_result

    people, asked = road.app.services.use(Approvals), []
    value = {"scope": "app", "op": "file.mkdir", "target": "folder"}
    try:
        await road.app.dispatcher.call_wire(value, LOCAL, None, ask_by_result)
    except Exception as question:
        asked.append(question.args[0])
    with pytest.raises(ConfirmRequired):
        await people.take_response(asked[0], replace(LOCAL, connection="elsewhere"), "no")
    assert await events_of(road, "approvals.deny") == []
    with pytest.raises(DeniedByPerson, match="said no"):
        await people.take_response(asked[0], LOCAL, "no")
    (answer,) = await events_of(road, "approvals.deny")
    assert (answer["principal"], answer["summary"]["asked"]) == (LOCAL.id, asked[0])

"""Every act of the owner that changes something is in the history: who, what, with which effect. Questions are not."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from computer_linker import owner
from computer_linker.audit.wording import described
from computer_linker.model.effect import Effect
from computer_linker.model.history import HistoryEvent
from computer_linker.registry.catalog import collect
from support.commands import command
from support.events import event_of, owners_history
from support.oauth import Browser, tokens
from support.road import folder_scope
from support.service import TOKEN, Service, serving

TRIED = {
    "approvals.allow", "approvals.allow_client", "approvals.close", "approvals.deny", "approvals.disallow_client", "approvals.phone",
    "approvals.push", "approvals.revoke", "approvals.unpush", "halt", "resume", "history.prune",
    "process.stop", "proof.attach", "proof.capture", "sessions.revoke", "token.rotate", "undo", "stop",
}  # fmt: skip


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("acts")
    scopes = [
        folder_scope(folder / "root", allowedCommands=["*"]),
        folder_scope(folder / "root", "asks", confirm="all"),
    ]
    with serving(folder, token=TOKEN, scopes=scopes, approvalPage=True) as running:
        yield running


def cli(service: Service, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return command(service.home, *words, stdin=stdin)


def call(service: Service, op: str, target: str | None = None, scope: str = "app", **parts: Any) -> dict[str, Any]:
    http = service.http()
    try:
        request = {"scope": scope, "op": op, **({} if target is None else {"target": target}), **parts}
        return http.control("computer_operation", **request)
    finally:
        http.close()


def waiting(service: Service, name: str = "asked.txt") -> str:
    """The id of a new request; one that is asked again gets the answer that it had."""
    refused = call(service, "file.write", name, "asks", input={"content": "x"})
    asked: str = refused["error"]["details"]["approvalId"]
    return asked


def done(service: Service, op: str, *words: str, effect: str = "confirmed", stdin: str = "") -> dict[str, Any]:
    """The event of a command that must succeed."""
    ran = cli(service, *words, stdin=stdin)
    assert ran.returncode == 0, ran.stderr
    event = event_of(service.home, op)
    assert event["principal"].startswith("cli:") and event["client"] == "computer-linker"
    assert (event["ok"], event["outcome"], event["effect"]) == (True, "done", effect)
    return event


def test_halt_and_resume(service: Service) -> None:
    done(service, "halt", "halt")
    done(service, "resume", "resume")


def test_answers(service: Service) -> None:
    asked = waiting(service)
    allowed = done(service, "approvals.allow", "approvals", "allow", asked)
    assert allowed["summary"]["asked"] == asked
    assert allowed["summary"]["operation"] == "file.write" and allowed["summary"]["inScope"] == "asks"
    assert (allowed["summary"]["way"], allowed["summary"]["extent"]) == ("terminal", "once")
    assert len(allowed["summary"]["digest"]) == 64
    assert call(service, "file.write", "asked.txt", "asks", input={"content": "x"})["ok"]
    asked = waiting(service)
    denied = done(service, "approvals.deny", "approvals", "deny", asked)
    assert denied["summary"]["asked"] == asked and "extent" not in denied["summary"]
    done(service, "approvals.revoke", "approvals", "revoke")
    done(service, "approvals.phone", "approvals", "phone", "--json")
    done(service, "approvals.close", "approvals", "close")


def test_an_answer_to_what_does_not_wait_is_refused_and_recorded(service: Service) -> None:
    ran = cli(service, "approvals", "allow", "ask_000000000000000000000000")
    assert ran.returncode == 1 and "Nothing waits under that id" in ran.stderr
    assert event_of(service.home, "approvals.allow", ok=False)["errorCode"] == "not_found"


def test_who_else_approves_and_where_requests_are_announced(service: Service) -> None:
    allowed = done(service, "approvals.allow_client", "approvals", "allow-client", "some-client")
    assert allowed["summary"] == {"client": "some-client"}
    done(service, "approvals.disallow_client", "approvals", "disallow-client", "some-client")
    # What a message has in it is in tests/approvals/test_push.py; here, that a failed act is in the history too.
    for op, words in (("push", "https://127.0.0.1:9/hook"), ("unpush", "push_nothing")):
        assert cli(service, "approvals", op, words).returncode == 1
        assert event_of(service.home, f"approvals.{op}", ok=False)["errorCode"]


def test_processes(service: Service) -> None:
    started = call(service, "command.start", ".", input={"command": "sleep 93.5"})
    process = started["data"]["processId"]
    stopped = done(service, "process.stop", "process", "stop", process)
    assert stopped["summary"] == {"command": "sleep 93.5", "process": process, "inScope": "app"}
    listed = json.loads(cli(service, "process", "list", "--json").stdout)["processes"]
    assert [one["status"] for one in listed if one["processId"] == process] == ["stopped"]


def test_evidence(service: Service) -> None:
    kept = done(service, "proof.attach", "proof", "attach", "-", "--scope", "app", stdin="all well\n")
    inner = event_of(service.home, "artifact.attach")
    assert inner["parent"] == kept["operationId"] and kept["summary"]["operation"] == inner["operationId"]
    ran = cli(service, "proof", "capture", "--scope", "app")
    assert ran.returncode == 1 and "permission_denied" in ran.stderr
    assert event_of(service.home, "proof.capture", ok=False)["errorCode"] == "permission_denied"


def test_undo(service: Service) -> None:
    written = call(service, "file.write", "undone.txt", input={"content": "x"})
    event = done(service, "undo", "undo", written["operationId"])
    assert event["summary"]["undone"] == written["operationId"]
    assert not (service.root / "undone.txt").exists()


def test_the_history_itself(service: Service) -> None:
    event = done(service, "history.prune", "history", "prune", "--older-than", "90d")
    assert event["summary"] == {"removed": 0}
    assert cli(service, "history", "verify").returncode == 0


def test_the_start_of_the_service(service: Service) -> None:
    """Point 001-112. It is recorded once the service listens, so right after the address is known it may not be there yet."""
    started = event_of(service.home, "service.start")
    assert started["summary"]["address"] == service.url and started["principal"].startswith("cli:")


def test_questions_are_not_in_the_history(service: Service) -> None:
    for words in (
        ("approvals", "list"),
        ("process", "list"),
        ("sessions", "list"),
        ("history", "verify"),
        ("history", "show", "last"),
        ("token", "show"),
    ):
        assert cli(service, *words).returncode == 0, words
    told = {event["op"] for event in owners_history(service.home, 500)}
    assert not told & {
        "approvals.list",
        "process.list",
        "sessions.list",
        "history.verify",
        "history.show",
        "history.list",
        "token.show",
    }


def test_tokens_and_sessions_and_the_end(tmp_path: Path) -> None:
    with serving(tmp_path, token=TOKEN) as running:
        tokens(Browser(running.base))
        ended = done(running, "sessions.revoke", "sessions", "revoke", "--all")["summary"]
        assert (ended["sessions"], ended["stopped"], ended["clients"]) == (1, 0, "Probe")
        done(running, "token.rotate", "token", "rotate")
        done(running, "stop", "stop", effect="unverifiable")


def test_no_act_of_these_groups_is_left_out() -> None:
    """A new act of the owner's in these groups gets a test here, or in the tests of its own group."""
    groups = {name.partition(".")[0] for name in TRIED}
    acts = {op.name for op in collect(owner).operations.values() if op.effect is not Effect.OBSERVE}
    assert {name for name in acts if name.partition(".")[0] in groups} == TRIED


def test_rows_of_settings_and_answers_say_what_they_are_about(service: Service) -> None:
    assert cli(service, "scope", "edit", "asks", "--policy", "confirm=maybe").returncode != 0
    refused = described(cast(HistoryEvent, event_of(service.home, "scope.edit", ok=False)))
    assert refused.what == "tried to change the scope asks" and refused.outcome.startswith("refused: ")
    assert "`confirm`" in refused.outcome
    assert cli(service, "approvals", "deny", waiting(service, "told.txt")).returncode == 0
    answer = described(cast(HistoryEvent, event_of(service.home, "approvals.deny")))
    assert answer.what.startswith("denied the request to write told.txt in asks of ")
    steps = {"operations": [{"op": "file.write", "target": "told.txt", "input": {"content": "x"}}, {"op": "file.list"}]}
    batch = call(service, "batch.run", scope="asks", input=steps)["error"]["details"]["approvalId"]
    assert cli(service, "approvals", "deny", batch).returncode == 0
    answer = described(cast(HistoryEvent, event_of(service.home, "approvals.deny")))
    assert answer.what.startswith("denied the request to run a batch: write told.txt; list in asks of ")
    for mode in ("never", "all"):
        assert cli(service, "scope", "edit", "asks", "--policy", f"confirm={mode}").returncode == 0
    assert described(cast(HistoryEvent, event_of(service.home, "scope.edit"))).what == (
        "changed the scope asks: confirm never -> all"
    )

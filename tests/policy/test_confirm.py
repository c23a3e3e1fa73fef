"""Confirmations are good once, for one caller, one connection and one exact request."""

import copy
import random
from dataclasses import replace
from typing import Any

import pytest

from computer_linker.approvals.ledger import Ledger
from computer_linker.approvals.request import ApprovalRequest
from computer_linker.errors import ConfirmRequired, DeniedByPerson, InvalidRequest, LimitExceeded
from computer_linker.model.principal import Principal
from computer_linker.policy.digest import canonical_request, digest_of
from computer_linker.policy.visible_text import escaped, preview

ME = Principal("local:me", "local_user", "session", "connection")


def asked(number: int = 1, digest: str = "d", now: float = 0.0, ttl: float = 60.0) -> ApprovalRequest:
    return ApprovalRequest(
        id=f"ask_{number}", op="file.delete", scope="app", digest=digest, preview="", principal=ME.id, session=ME.session,
        connection=ME.connection, client=None, asked_at=now, expires_at=now + ttl,
    )  # fmt: skip


def test_a_token_is_worth_nothing_before_a_person_approves_it() -> None:
    ledger = Ledger()
    token = ledger.issue_token(asked())
    with pytest.raises(ConfirmRequired):
        ledger.spend_token(token, ME, "d", 1)
    assert ledger.approve("ask_1", 2) is not None
    ledger.spend_token(token, ME, "d", 3)


def test_a_token_is_spent_once() -> None:
    ledger = Ledger()
    token = ledger.issue_token(asked())
    ledger.approve("ask_1", 1)
    successes = 0
    for _ in range(50):
        try:
            ledger.spend_token(token, ME, "d", 1)
            successes += 1
        except ConfirmRequired:
            pass
    assert successes == 1


@pytest.mark.parametrize(
    ("who", "digest", "now"),
    [
        (replace(ME, id="other"), "d", 1),
        (replace(ME, connection="other"), "d", 1),
        (ME, "e", 1),
        (ME, "d", 61),
    ],
)
def test_any_difference_is_a_refusal(who: Principal, digest: str, now: float) -> None:
    ledger = Ledger()
    token = ledger.issue_token(asked())
    ledger.approve("ask_1", 0.5)
    with pytest.raises(ConfirmRequired):
        ledger.spend_token(token, who, digest, now)


def test_silence_is_a_no() -> None:
    ledger = Ledger()
    request = asked()
    ledger.ask(request)
    assert ledger.approve("ask_1", 60) is None
    assert request.state == "expired"
    assert not ledger.spend_approval(ME, "d", 60)


def test_a_denied_request_cannot_be_approved_afterwards() -> None:
    ledger = Ledger()
    ledger.ask(asked())
    assert ledger.deny("ask_1", 1) is not None
    assert ledger.approve("ask_1", 2) is None


def test_guessing_costs_the_guesser_what_waits_for_them() -> None:
    ledger = Ledger()
    token = ledger.issue_token(asked())
    ledger.approve("ask_1", 1)
    for guess in range(10):
        with pytest.raises(ConfirmRequired):
            ledger.spend_token(f"guess-{guess}", ME, "d", 1)
    with pytest.raises(ConfirmRequired):
        ledger.spend_token(token, ME, "d", 1)


def test_three_noes_in_a_row_end_the_questions_for_a_while() -> None:
    """A caller must not wear the owner down; a yes, or a minute, ends it, and others are not concerned."""
    ledger = Ledger()
    for number in range(3):
        ledger.ask(asked(number, digest=str(number)))
        ledger.deny(f"ask_{number}", 1)
    with pytest.raises(DeniedByPerson):
        ledger.ask(asked(9, digest="new", now=2))
    other = asked(10, digest="new", now=2)
    other.principal = "local:other"
    ledger.ask(other)
    ledger.ask(asked(11, digest="late", now=62))
    assert {one.id for one in ledger.waiting(62)} >= {"ask_11"}


def test_the_waiting_list_is_bounded() -> None:
    ledger = Ledger()
    with pytest.raises(LimitExceeded):
        for number in range(1000):
            ledger.ask(asked(number))
    assert len(ledger.waiting(0)) <= 200


def test_another_order_of_keys_is_the_same_request_and_an_alias_is_named_by_its_own_name() -> None:
    one = canonical_request("app", "file.write", "a", {"content": "x", "encoding": "utf8"}, None)
    two = canonical_request("app", "file.write", "a", {"encoding": "utf8", "content": "x"}, {})
    assert digest_of(one) == digest_of(two)
    assert len(digest_of(one)) == 64


def test_a_number_without_one_canonical_form_is_refused() -> None:
    with pytest.raises(InvalidRequest):
        canonical_request("app", "x.y", None, {"n": 2**60}, None)


def mutated(value: Any, chance: random.Random) -> Any:
    """The request with one thing changed."""
    value = copy.deepcopy(value)
    where = chance.choice(["scope", "op", "target", "text", "count", "extra", "missing"])
    match where:
        case "scope" | "op" | "target":
            at = chance.randrange(len(value[where]) + 1)
            value[where] = value[where][:at] + chance.choice("abc/.\u202e ") + value[where][at:]
        case "text":
            value["input"]["text"] += chance.choice(["", " ", "\n", "x"]) + chr(chance.randrange(1, 0xD000))
        case "count":
            value["input"]["count"] += chance.choice([-1, 1, 0.5])
        case "extra":
            value["input"][f"k{chance.random()}"] = None
        case _:
            del value["input"]["count"]
    return value


def test_altered_requests_are_all_other_requests() -> None:
    original: dict[str, Any] = {
        "scope": "desk",
        "op": "desktop.type_text",
        "target": "ref",
        "input": {"text": "ls", "count": 2},
        "options": {},
    }
    base = digest_of(canonical_request(**original))
    chance = random.Random(7)
    assert all(digest_of(canonical_request(**mutated(original, chance))) != base for _ in range(20_000))


def test_the_preview_hides_nothing() -> None:
    request = canonical_request(
        "desk", "desktop.type_text", None, {"text": "ls\u202e" + "\n" * 100 + "\x1b[2Jrm -rf /\u2066"}, None
    )
    shown = preview(request, digest_of(request))
    assert all(char == "\n" or char.isprintable() for char in shown)
    assert "\u202e" not in shown
    assert "\x1b" not in shown
    assert "rm -rf /" in shown.replace("\n", "")
    assert f"{len(request)} bytes" in shown


def test_invisible_characters_are_written_out() -> None:
    assert escaped("a\u200bb\U000e0041\u0007") == "a\\u200bb\\U000e0041\\x07"
    assert escaped("größe 日本 é") == "größe 日本 é"
    # Letters, marks and signs by category, and yet nothing is drawn for them.
    assert escaped("a\u3164\u115f\u2800\ufe0f\u034f\U000e0101b") == "a\\u3164\\u115f\\u2800\\ufe0f\\u034f\\U000e0101b"
    # A heap of marks would be painted over the lines above.
    assert escaped("e" + "\u0301" * 6) == "e" + "\u0301" * 4 + "\\u0301\\u0301"

"""Every rule of the bridge's contract, and the test over the real socket that keeps it. The gaps of the other modules are here.

RULES says for each rule which tests keep it; a name that no longer stands for a test fails the suite.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from computer_linker.computer.local.probe import this_computer
from computer_linker.transports.bridge.messages import ACTS, BODIES
from support.bridge_host import Host, hosting
from support.waiting import until

pytestmark = pytest.mark.anyio

RULES: dict[str, list[str]] = {
    "0 no act without a confirmation": ["test_an_act_without_a_persons_yes_is_refused", "test_an_unconfirmed_click_reaches_nothing"],
    "0 every result leaves evidence": ["test_observe_leaves_a_picture_and_the_controls", "test_find_gives_references_that_click_takes"],
    "0 nothing is done where no evidence can be kept": ["test_an_act_without_a_place_for_its_evidence_is_not_done"],
    "1 JSON-RPC 2.0, one message one answer": ["test_a_malformed_message_is_an_invalid_request", "test_answers_carry_the_requests_id"],
    "1 messages are bounded": ["test_a_message_without_end_is_cut_off"],
    "1 the socket is private, the peer is checked": ["test_the_socket_is_private", "test_a_process_that_has_ended_is_not_there"],
    "2.1 the workspace lies beneath the root": [
        "test_a_workspace_outside_the_root_is_forbidden_and_stays_empty",
        "test_without_a_workspace_root_nothing_but_health_and_doctor_answers",
    ],
    "2.2 where evidence lies, and who may read it": [
        "test_observe_leaves_a_picture_and_the_controls", "test_refusals_leave_a_private_result_and_the_history_says_where",
        "test_an_evidence_folder_that_is_a_link_out_is_refused",
    ],
    "2.2 evidence is bounded by age, number and size": [
        "test_what_is_too_old_goes_and_what_is_not_ours_stays", "test_the_oldest_go_when_there_are_too_many",
        "test_the_oldest_go_when_they_are_too_large_together", "test_one_execution_leaves_only_so_much",
    ],
    "2.2 evidence is masked and holds nothing that was typed": [
        "test_a_password_is_in_no_evidence", "test_text_arrives_exactly_and_is_in_no_evidence",
    ],
    "2.2 the history lists it": ["test_the_history_says_where_the_evidence_lies"],
    "3.3 an error has code, message, retryable and details": ["test_an_error_has_its_four_members"],
    "4.1 every method needs meta, exactly": ["test_meta_is_exact", "test_no_method_goes_without_meta"],
    "4.2 a token is bound to its peer": ["test_a_token_of_one_process_is_worth_nothing_to_another"],
    "4.2 a token is bound to its method and parameters": ["test_a_token_is_good_for_exactly_its_parameters"],
    "4.2 a token has its time": ["test_a_token_ends_with_its_time"],
    "4.2 a token is good once": ["test_one_token_makes_one_click_however_many_spend_it_at_once"],
    "4.2 guessing tokens": ["test_guessing_tokens_costs_what_waits"],
    "4.2 a token goes before a phrase": ["test_a_wrong_token_is_not_saved_by_the_phrase"],
    "4.2 the phrase": ["test_the_phrase_counts_only_where_the_config_says_so"],
    "4.2 what a client says of an approval is not believed": ["test_an_act_without_a_persons_yes_is_refused"],
    "4.2 reading and aborting need no confirmation": ["test_what_only_looks_takes_no_confirmation"],
    "4.3 a route": ["test_a_route_leads_to_its_window_or_nowhere", "test_a_pattern_that_is_no_plain_text_is_refused"],
    "4.4 a selector": ["test_each_part_of_a_selector_counts"],
    "4.5 an element reference and its fingerprint": ["test_find_gives_references_that_click_takes"],
    "5.1 health, 5.2 doctor": ["test_health_names_the_peer_and_what_is_granted", "test_a_whole_desktop_is_healthy"],
    "5.3 observe": ["test_observe_leaves_a_picture_and_the_controls", "test_observe_takes_only_what_was_asked_for"],
    "5.4 find looks in the application in front": ["test_without_a_route_the_application_in_front_is_meant"],
    "5.5 click presses by the control's own action where that is safe": ["test_a_click_says_by_which_method_it_pressed"],
    "5.5 a target that is not there": ["test_a_missing_element_is_not_found"],
    "5.6 type text, and the clipboard stays": ["test_text_arrives_exactly_and_is_in_no_evidence", "test_typing_leaves_the_clipboard_as_it_was"],
    "5.7 the three chords": ["test_the_chords_of_the_contract_reach_the_application"],
    "5.7 a chord goes where the route says": ["test_a_hotkey_goes_where_the_route_says_or_nowhere"],
    "5.7 chords past the application are refused": ["test_a_chord_past_the_application_is_refused_before_a_person_is_asked"],
    "5.8 wait until": ["test_wait_until_matches_or_times_out", "test_a_wait_must_say_how_long"],
    "5.9 abort ends a request": ["test_abort_ends_a_wait_by_its_request_id"],
    "5.9 after abort no key or button is sent": [
        "test_no_key_follows_an_abort_over_the_socket", "test_typing_on_x11_ends_with_the_abort",
        "test_typing_on_sway_ends_with_the_abort", "test_a_drag_on_x11_lets_go_with_the_abort",
        "test_a_drag_on_sway_lets_go_with_the_abort",
    ],
    "5.9 abort of what has ended": ["test_abort_of_what_is_not_under_way_is_an_invalid_request"],
    "5.9 abort is for one's own requests": ["test_another_process_cannot_abort_it"],
    "5.10 what a token comes with": ["test_a_token_comes_with_what_it_is_bound_to"],
    "6 nine codes": ["test_every_code_of_ours_has_one_of_the_nine"],
    "7 schema version 1": ["test_meta_is_exact", "test_health_names_the_peer_and_what_is_granted"],
    "lanes: one at a time, workflows whole": [
        "test_two_clients_at_once_each_finish_their_whole_workflow", "test_two_programs_at_once_each_finish_their_form",
    ],
    "lanes: the person first": [
        "test_a_hand_on_the_mouse_makes_the_next_act_wait", "test_a_hand_ends_the_act_under_way",
        "test_halt_refuses_every_act_until_the_person_resumes",
    ],
}  # fmt: skip


def test_each_rule_is_kept_by_a_test_that_exists() -> None:
    there = {
        name for file in Path(__file__).parent.glob("test_*.py") for name in re.findall(r"def (test_\w+)", file.read_text())
    }  # fmt: skip
    missing = {name for names in RULES.values() for name in names} - there
    assert not missing and all(RULES.values())


async def test_answers_carry_the_requests_id(host: Host) -> None:
    for number in ("7", '"seven"'):
        meta = json.dumps(host.client.meta())
        await host.client.send_raw(
            f'{{"jsonrpc":"2.0","id":{number},"method":"desktop.health","params":{{"meta":{meta}}}}}'.encode()
        )
        answer = await host.client.receive()
        assert answer.keys() == {"jsonrpc", "id", "result"}
        assert (answer["jsonrpc"], answer["id"]) == ("2.0", json.loads(number))


async def test_an_error_has_its_four_members(host: Host) -> None:
    answer = await host.client.ask("desktop.find", selector={"byRole": "AXButton"})
    assert answer.keys() == {"jsonrpc", "id", "error"}
    assert answer["error"].keys() == {"code", "message", "retryable", "details"}
    assert answer["error"]["retryable"] is False


@pytest.mark.parametrize("method", BODIES)
async def test_no_method_goes_without_meta(host: Host, method: str) -> None:
    for params in ({}, {"meta": None}, {"meta": {"schemaVersion": 1}}):
        await host.client.send_raw(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode())
        assert (await host.client.receive())["error"]["code"] == "DESKTOP_INVALID_REQUEST"
    assert host.evidence() == []


@pytest.mark.parametrize("method", [name for name in BODIES if name not in ACTS])
async def test_what_only_looks_takes_no_confirmation(host: Host, method: str) -> None:
    code = await host.client.ask(method, confirm={"token": "x"})
    assert code["error"]["code"] == "DESKTOP_INVALID_REQUEST"


async def test_a_token_ends_with_its_time(host: Host) -> None:
    intent = {"method": "desktop.hotkey", "params": {"keys": ["enter"]}}
    issued = await host.client.result("desktop.confirm.issue", intent=intent, ttlMs=1000)
    assert host.approvals.answer(issued["approvalId"], "yes")
    # Listing what waits is what drops the questions whose time is over.
    await until(lambda: host.approvals.waiting() is None or not host.approvals.ledger.find(issued["approvalId"]))
    code = await host.client.code("desktop.hotkey", keys=["enter"], confirm={"token": issued["token"]})
    assert code == "DESKTOP_CONFIRM_REQUIRED"


@pytest.mark.parametrize("ttl", [0, 999, 600_001, "60000", 1e5])
async def test_a_time_that_is_none_is_refused(host: Host, ttl: Any) -> None:
    intent = {"method": "desktop.hotkey", "params": {"keys": ["enter"]}}
    assert await host.client.code("desktop.confirm.issue", intent=intent, ttlMs=ttl) == "DESKTOP_INVALID_REQUEST"
    assert host.approvals.waiting() == []


async def test_a_token_comes_with_what_it_is_bound_to(host: Host) -> None:
    intent = {"method": "desktop.typeText", "params": {"text": "hello"}}
    issued = await host.client.result("desktop.confirm.issue", intent=intent)
    health = await host.client.result("desktop.health")
    assert issued["peer"] == health["peer"] and issued["approved"] is False
    assert issued["scope"]["method"] == "desktop.typeText"
    assert re.fullmatch(r"[0-9a-f]{64}", issued["scope"]["paramsDigest"]), "the whole digest, never cut short"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", issued["expiresAt"])
    assert len(issued["token"]) >= 43, "256 bits"
    again = await host.client.result("desktop.confirm.issue", intent=intent)
    assert again["token"] != issued["token"] and again["scope"] == issued["scope"]


@pytest.mark.parametrize("method", ["desktop.find", "desktop.observe", "desktop.nothing", "file.delete", ""])
async def test_a_token_is_issued_only_for_the_three_acts(host: Host, method: str) -> None:
    intent = {"method": method, "params": {}}
    assert await host.client.code("desktop.confirm.issue", intent=intent) == "DESKTOP_INVALID_REQUEST"
    assert host.approvals.waiting() == []


async def test_a_wrong_token_is_not_saved_by_the_phrase(tmp_path: Path) -> None:
    async with hosting(tmp_path, this_computer({}), allowPhrase=True) as host:
        both = {"token": "guess", "phrase": "CONFIRM"}
        code = await host.client.code("desktop.hotkey", keys=["enter"], confirm=both)
        assert code == "DESKTOP_CONFIRM_REQUIRED"


async def test_a_wait_must_say_how_long(host: Host) -> None:
    condition = {"selectorExists": {"byRole": "AXButton"}}
    assert await host.client.code("desktop.waitUntil", condition=condition) == "DESKTOP_INVALID_REQUEST"
    assert await host.client.code("desktop.waitUntil", timeoutMs=100) == "DESKTOP_INVALID_REQUEST"


@pytest.mark.parametrize("pattern", ["(a+)+$", "a|b", "[ab]", "^a", ".*", "", "a.*b"])
async def test_a_pattern_that_is_no_plain_text_is_refused(host: Host, pattern: str) -> None:
    route = {"window": {"titlePattern": pattern}}
    code = await host.client.code("desktop.find", route=route, selector={"byRole": "AXButton"})
    assert code == "DESKTOP_INVALID_REQUEST"


async def test_guessing_tokens_costs_what_waits(host: Host) -> None:
    token = await host.token("desktop.hotkey", keys=["enter"])
    for number in range(10):
        code = await host.client.code("desktop.hotkey", keys=["enter"], confirm={"token": f"guess-{number}"})
        assert code == "DESKTOP_CONFIRM_REQUIRED"
    code = await host.client.code("desktop.hotkey", keys=["enter"], confirm={"token": token})
    assert code == "DESKTOP_CONFIRM_REQUIRED", "the right one is worth nothing any more"


@pytest.mark.parametrize(
    "bad", [b'"\\udfff"', b"NaN", b'{"a":1,"a":2}', b"[" * 70 + b'{"id":9}' + b"]" * 70, b"[" + b"1," * 100_001 + b"1]"]
)
async def test_a_request_that_cannot_be_read_is_answered_under_its_own_id(host: Host, bad: bytes) -> None:
    for members in ((b'"id":7', b'"params":%b'), (b'"params":%b', b'"id":7')):
        rest = b",".join(members).replace(b"%b", bad)
        await host.client.send_raw(b'{"jsonrpc":"2.0","method":"desktop.health",' + rest + b"}")
        answer = await host.client.receive()
        assert (answer["id"], answer["error"]["code"]) == (7, "DESKTOP_INVALID_REQUEST")
    await host.client.send_raw(b'[{"jsonrpc":"2.0","id":7,"method":"desktop.health"}]')
    assert (await host.client.receive())["id"] is None

"""The bridge's socket refuses what it must, before anything happens, on a machine without a desktop."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from computer_linker import home as places
from computer_linker.computer.local.probe import this_computer
from computer_linker.errors import wire_codes
from computer_linker.system import started_at
from computer_linker.transports.bridge.listener import Peer
from computer_linker.transports.bridge.messages import CODES
from support.bridge import BridgeClient
from support.bridge_host import Host, hosting

pytestmark = pytest.mark.anyio

SELECTOR = {"selector": {"byRole": "button", "titleContains": "Delete"}}


def test_every_code_of_ours_has_one_of_the_nine() -> None:
    assert set(CODES) >= set(wire_codes())
    assert set(CODES.values()) == {
        "DESKTOP_HOST_NOT_READY", "DESKTOP_PERMISSION_MISSING", "DESKTOP_WORKSPACE_FORBIDDEN", "DESKTOP_CONFIRM_REQUIRED",
        "DESKTOP_ELEMENT_NOT_FOUND", "DESKTOP_TIMEOUT", "DESKTOP_ABORTED", "DESKTOP_INTERNAL_ERROR", "DESKTOP_INVALID_REQUEST",
    }  # fmt: skip


async def test_the_socket_is_private(host: Host) -> None:
    assert stat.S_IMODE((host.home / places.BRIDGE_NAME).stat().st_mode) == 0o600


async def test_health_names_the_peer_and_what_is_granted(host: Host) -> None:
    health = await host.client.result("desktop.health")
    assert health["bridge"] == {"schemaVersion": 1}
    assert health["peer"]["pid"] == os.getpid()
    assert health["permissions"] == {"accessibility": "denied", "screenRecording": "denied"}
    doctor = await host.client.result("desktop.doctor")
    assert not doctor["healthy"] and len(doctor["issues"]) == 2
    assert doctor["permissions"]["screenRecording"]["required"] is True


@pytest.mark.parametrize(
    "raw",
    [
        b"{", b"[]", b"null", b'{"jsonrpc":"1.0","id":1,"method":"desktop.health","params":{}}',
        b'{"jsonrpc":"2.0","method":"desktop.health","params":{}}',
        b'{"jsonrpc":"2.0","id":null,"method":"desktop.health","params":{}}',
        b'{"jsonrpc":"2.0","id":1,"method":"desktop.nothing","params":{}}',
        b'{"jsonrpc":"2.0","id":1,"method":"desktop.health","params":[]}',
        b'{"jsonrpc":"2.0","id":1,"method":"desktop.health","params":{"meta":{}}}',
        b'{"jsonrpc":"2.0","id":1,"id":2,"method":"desktop.health","params":{}}',
        b'{"jsonrpc":"2.0","id":1,"method":"desktop.health","params":{},"x":1}',
        b"\xff\xfe", b'{"a":' * 100,
    ],
)  # fmt: skip
async def test_a_malformed_message_is_an_invalid_request(host: Host, raw: bytes) -> None:
    await host.client.send_raw(raw)
    answer = await host.client.receive()
    assert answer["error"]["code"] == "DESKTOP_INVALID_REQUEST"
    assert await host.client.result("desktop.health")


async def test_a_message_without_end_is_cut_off(host: Host) -> None:
    await host.client.send_raw(b'{"x":"' + b"a" * 1_100_000)
    assert (await host.client.receive())["error"]["code"] == "DESKTOP_INVALID_REQUEST"


@pytest.mark.parametrize(
    "meta",
    [
        {"schemaVersion": 2},
        {"schemaVersion": "1"},
        {"requestId": ""},
        {"timeoutMs": 0},
        {"timeoutMs": 1e9},
        {"extra": 1},
    ],
)
async def test_meta_is_exact(host: Host, meta: dict[str, Any]) -> None:
    assert (
        await host.client.code("desktop.find", meta=host.client.meta(**meta), selector={}) == "DESKTOP_INVALID_REQUEST"
    )
    assert host.evidence() == []


def spots(tmp_path: Path) -> dict[str, str]:
    root, out = tmp_path / "workspaces", tmp_path / "out"
    out.mkdir()
    (tmp_path / "workspaces-evil").mkdir()
    (root / "link").symlink_to(out)
    (root / "up").symlink_to("..")
    (root / "file").write_text("")
    return {
        "outside": str(out), "prefix": str(tmp_path / "workspaces-evil"), "link": str(root / "link"),
        "up": f"{root}/up/out", "dots": f"{root}/one/../../out", "relative": "one", "file": str(root / "file"),
        "missing": str(root / "missing"), "proc": f"/proc/self/root{out}", "slash": "/", "nul": f"{root}/one\0x",
    }  # fmt: skip


async def test_a_workspace_outside_the_root_is_forbidden_and_stays_empty(host: Host, tmp_path: Path) -> None:
    for name, path in spots(tmp_path).items():
        meta = host.client.meta(workspacePath=path)
        code = await host.client.code("desktop.observe", meta=meta)
        assert code == "DESKTOP_WORKSPACE_FORBIDDEN", name
    assert list((tmp_path / "out").iterdir()) == []
    assert list((tmp_path / "workspaces-evil").iterdir()) == []


@pytest.mark.parametrize("at", ["artifacts", "artifacts/desktop"])
async def test_an_evidence_folder_that_is_a_link_out_is_refused(host: Host, tmp_path: Path, at: str) -> None:
    out = tmp_path / "out"
    out.mkdir()
    place = host.workspace / at
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(out)
    assert await host.client.code("desktop.observe") == "DESKTOP_WORKSPACE_FORBIDDEN"
    assert list(out.iterdir()) == []


async def test_without_a_workspace_root_nothing_but_health_and_doctor_answers(tmp_path: Path) -> None:
    async with hosting(tmp_path, this_computer({}), workspaceRoot=None) as host:
        assert await host.client.result("desktop.health")
        assert not (await host.client.result("desktop.doctor"))["healthy"]
        assert await host.client.code("desktop.observe") == "DESKTOP_HOST_NOT_READY"


async def test_a_machine_without_a_desktop_is_not_ready(host: Host) -> None:
    assert await host.client.code("desktop.find", selector={"byRole": "AXButton"}) == "DESKTOP_HOST_NOT_READY"


@pytest.mark.parametrize(
    "confirm",
    [
        None, {}, {"phrase": "CONFIRM"}, {"phrase": "confirm"}, {"token": "guess"}, {"token": ""},
        {"token": "guess", "approvedAt": "2026-02-09T12:00:00Z", "approver": "user"}, {"token": "guess", "phrase": "CONFIRM"},
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("desktop.click", {"target": SELECTOR}),
        ("desktop.typeText", {"text": "hello"}),
        ("desktop.hotkey", {"keys": ["cmd", "v"]}),
    ],
)
async def test_an_act_without_a_persons_yes_is_refused(
    host: Host, method: str, params: dict[str, Any], confirm: dict[str, Any] | None
) -> None:
    given = params if confirm is None else {**params, "confirm": confirm}
    assert await host.client.code(method, **given) == "DESKTOP_CONFIRM_REQUIRED"


async def test_the_phrase_counts_only_where_the_config_says_so(tmp_path: Path) -> None:
    async with hosting(tmp_path, this_computer({}), allowPhrase=True) as host:
        meta = host.client.meta()
        for phrase in ("CONFIRM", f"CONFIRM:{meta['requestId']}"):
            answer = await host.client.ask("desktop.hotkey", meta=meta, keys=["enter"], confirm={"phrase": phrase})
            # Past the confirmation, to a machine that has no keyboard.
            assert answer["error"]["code"] == "DESKTOP_HOST_NOT_READY", answer
        for phrase in ("CONFIRM:other", "confirm", "CONFIRM "):
            code = await host.client.code("desktop.hotkey", keys=["enter"], confirm={"phrase": phrase})
            assert code == "DESKTOP_CONFIRM_REQUIRED"


async def test_a_token_is_worth_nothing_before_a_person_approves_it(host: Host) -> None:
    token = await host.token("desktop.hotkey", approve=False, keys=["enter"])
    assert (
        await host.client.code("desktop.hotkey", keys=["enter"], confirm={"token": token}) == "DESKTOP_CONFIRM_REQUIRED"
    )
    [asked] = host.approvals.waiting()
    assert "enter" in asked.preview and token not in json.dumps(asked.preview)


async def test_a_denied_token_stays_refused(host: Host) -> None:
    token = await host.token("desktop.hotkey", approve=False, keys=["enter"])
    host.approvals.answer(host.approvals.waiting()[0].id, "no")
    assert (
        await host.client.code("desktop.hotkey", keys=["enter"], confirm={"token": token}) == "DESKTOP_CONFIRM_REQUIRED"
    )


@pytest.mark.parametrize(
    "changed",
    [
        {"keys": ["Enter"]}, {"keys": ["tab"]}, {"keys": ["enter", "enter"]}, {"keys": ["enter"], "options": {"delayMs": 51}},
        {"keys": ["enter"], "route": {"app": {"name": "x"}}}, {"keys": ["enter"], "route": {}}, {"keys": ["enter"], "options": {}},
    ],
)  # fmt: skip
async def test_a_token_is_good_for_exactly_its_parameters(host: Host, changed: dict[str, Any]) -> None:
    token = await host.token("desktop.hotkey", keys=["enter"])
    assert await host.client.code("desktop.hotkey", confirm={"token": token}, **changed) == "DESKTOP_CONFIRM_REQUIRED"
    assert (
        await host.client.code("desktop.typeText", confirm={"token": token}, text="enter") == "DESKTOP_CONFIRM_REQUIRED"
    )
    # Refused requests spent nothing: the exact one still passes, to a machine without a keyboard; and then never again.
    assert (
        await host.client.code("desktop.hotkey", keys=["enter"], confirm={"token": token}) == "DESKTOP_HOST_NOT_READY"
    )
    assert (
        await host.client.code("desktop.hotkey", keys=["enter"], confirm={"token": token}) == "DESKTOP_CONFIRM_REQUIRED"
    )


async def test_a_token_of_one_process_is_worth_nothing_to_another(host: Host) -> None:
    token = await host.token("desktop.hotkey", keys=["enter"])
    meta = host.client.meta()
    message = {
        "jsonrpc": "2.0", "id": "1", "method": "desktop.hotkey",
        "params": {"meta": meta, "keys": ["enter"], "confirm": {"token": token}},
    }  # fmt: skip
    code = (
        "import os, socket, sys, time\nme = os.getpid()\nif os.fork():\n    os._exit(0)\n"
        # Away from the service, which is this test's own process and answers no child of its own.
        "while os.getppid() == me:\n    time.sleep(0.001)\n"
        "s = socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\n"
        "s.sendall(sys.stdin.buffer.read() + b'\\n')\nprint(s.makefile().readline())"
    )
    argv = [sys.executable, "-I", "-c", code, str(host.home / places.BRIDGE_NAME)]
    with anyio.fail_after(20):
        done = await anyio.run_process(argv, input=json.dumps(message).encode())
    assert json.loads(done.stdout)["error"]["code"] == "DESKTOP_CONFIRM_REQUIRED"
    second = await BridgeClient.open(host.home, str(host.workspace))
    try:
        # The same process over another connection is the same peer.
        assert await second.code("desktop.hotkey", keys=["enter"], confirm={"token": token}) == "DESKTOP_HOST_NOT_READY"
    finally:
        await second.aclose()


def test_a_reused_process_id_is_another_peer() -> None:
    started = started_at(os.getpid())
    assert started is not None
    now, before = Peer(os.getpid(), 0, started), Peer(os.getpid(), 0, started - 1)
    assert now.is_there and not before.is_there
    assert now.principal().connection != before.principal().connection and now.digest != before.digest


def test_a_process_that_has_ended_is_not_there() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    started = started_at(child.pid)
    assert started is not None
    peer = Peer(child.pid, 0, started)
    assert peer.is_there
    child.communicate(b"\n", timeout=20)
    assert not peer.is_there


async def test_abort_of_what_is_not_under_way_is_an_invalid_request(host: Host) -> None:
    assert await host.client.code("desktop.abort", executionId="nothing") == "DESKTOP_INVALID_REQUEST"


async def test_refusals_leave_a_private_result_and_the_history_says_where(host: Host) -> None:
    answer = await host.client.ask("desktop.find", selector={"byRole": "button"})
    [folder] = host.evidence()
    assert folder.name == answer["error"]["details"]["executionId"]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for file in folder.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    kept = json.loads((folder / "result.json").read_text())
    assert kept["ok"] is False and kept["error"]["code"] == "DESKTOP_HOST_NOT_READY"

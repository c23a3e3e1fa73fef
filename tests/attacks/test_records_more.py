"""Attacks on the history and on what runs: edited records, floods of strangers, others' processes, words in their output."""

import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from attacks.ground import Field, battlefield
from computer_linker.audit.layout import segment_path
from support.road import LOCAL, OWNER, Road, folder_scope
from support.service import TOKEN, serving

pytestmark = pytest.mark.anyio


@pytest.fixture
async def road(tmp_path: Path) -> AsyncIterator[Road]:
    scopes = [
        folder_scope(tmp_path / "root", "exec", allowedCommands=["*"]),
        folder_scope(tmp_path / "root", "exec2", allowedCommands=["*"]),
    ]
    async with Road.open(tmp_path, scopes) as opened:
        yield opened


async def started(road: Road, *argv: str) -> str:
    made = await road.data("process.start", ".", scope="exec", input={"command": list(argv)})
    return str(made["processId"])


async def test_a_process_is_its_starters_alone(road: Road) -> None:
    """PROC-003: in the same scope too, another caller finds nothing by its id, whatever is asked."""
    own, other = await started(road, "sleep", "60"), replace(LOCAL, id="oauth:other")
    for op, given in (("read", None), ("stop", None), ("send", {"text": "x\n"})):
        parts = {} if given is None else {"input": given}
        assert await road.code(f"process.{op}", own, scope="exec", principal=other, **parts) == "process_not_found"
    assert (await road.data("process.list", scope="exec", principal=other))["processes"] == []
    assert (await road.data("process.read", own, scope="exec"))["status"] == "running"
    assert (await road.data("process.stop", own, scope="exec"))["status"] != "running"


@pytest.mark.parametrize("options", [{"offset": -1}, {"offset": 10**18}, {"cursor": -1}, {"cursor": 10**18}])
async def test_a_place_in_the_output_that_is_none_is_refused_or_clamped(road: Road, options: dict[str, int]) -> None:
    """PROC-022, PROC-023."""
    own = await started(road, "sh", "-c", "echo one; sleep 60")
    read = await road.call("process.read", own, scope="exec", options=options)
    assert read["ok"] or read["error"]["code"] == "invalid_request"
    assert read["ok"] is False or (read["data"]["chunks"] == [] and read["data"]["cursor"] < 1000)
    assert (await road.data("process.stop", own, scope="exec"))["status"] != "running"


async def test_a_list_tells_neither_other_scopes_nor_secrets(road: Road) -> None:
    """PROC-029, PROC-030."""
    own = await started(road, "sleep", "60", "--token=SECRETlist", "CROSSPROC")
    assert "CROSSPROC" not in str(await road.data("process.list", scope="exec2"))
    mine = str(await road.data("process.list", scope="exec"))
    assert own in mine and "SECRETlist" not in mine and "--token=[masked] CROSSPROC" in mine
    await road.data("process.stop", own, scope="exec")
    ended = str(await road.data("process.list", scope="exec"))
    assert "SECRETlist" not in ended


async def test_output_is_in_no_bundle_and_no_record(road: Road) -> None:
    """HIST-031: neither a bundle nor any other view holds what a process printed."""
    own = await started(road, "echo", "token=SECRETproc", "PRINTED-WORD")
    read = await road.data("process.read", own, scope="exec", options={"waitSeconds": 10})
    assert "PRINTED-WORD" in str(read)
    for view in ("debug_bundle", "last", "timeline", "sessions", "failed_replay"):
        told = str(await road.data(f"history.{view}", scope="exec"))
        assert "SECRETproc" not in told
    assert b"SECRETproc" not in b"".join(path.read_bytes() for path in (road.home / "audit").iterdir())


async def test_one_flipped_bit_is_named_by_its_record(road: Road) -> None:
    """AUD-006."""
    for number in range(10):
        await road.call("file.stat", f"name-{number}.txt", scope="exec")
    assert (await road.data("history.verify", scope="exec"))["valid"]
    journal = segment_path(road.home / "audit", 1)
    raw = bytearray(journal.read_bytes())
    at = raw.index(b"name-4.txt")
    number = int(raw[raw.rindex(b'"n":', 0, at) + 4 :].split(b",", 1)[0])
    raw[at] ^= 1
    journal.write_bytes(raw)
    told = await road.data("history.verify", scope="exec", principal=OWNER)
    assert not told["valid"] and str(number) in str(told), told


def test_strangers_who_knock_all_day_fill_no_disk(tmp_path: Path) -> None:
    """AUD-015: refusals before anybody is known; the state folder grows by less than a megabyte a minute."""
    with serving(tmp_path, token=TOKEN) as service:
        stranger = service.http()
        stranger.token = None
        before = _size(service.home)
        for _ in range(5_000):
            assert stranger.send("POST", "/mcp", {})[0] in (401, 429)
        assert _size(service.home) - before < 1_000_000
        assert len(service.log) < 1_000_000
        stranger.close()


def test_a_known_caller_who_fails_all_day_fills_no_disk(tmp_path: Path) -> None:
    """AUD-015, from inside: guesses at ids, names and scopes are counted once there are too many."""
    with battlefield(tmp_path) as field:
        before = _size(field.ground.state)
        for number in range(3_000):
            _knock(field, number)
        assert _size(field.ground.state) - before < 1_000_000


def _knock(field: Field, number: int) -> None:
    guess = f"proc_{number:024}"
    match number % 3:
        case 0:
            assert field.call("exec", "process.read", guess).code == "process_not_found"
        case 1:
            assert field.call("exec", f"no.{number}").code == "unknown_operation"
        case _:
            assert field.call("desk", "desktop.press", input={"key": "a", "confirm": {"token": guess}}).code is not None


def _size(home: Path) -> int:
    return sum(path.stat().st_size for path in home.rglob("*") if path.is_file())


async def test_a_command_fills_neither_memory_nor_outlives_others_when_it_runs_out(road: Road) -> None:
    """The folders a sandbox makes of memory are bounded, and the kernel takes a command before it takes the service."""
    script = "cat /proc/self/oom_score_adj; df -k --output=size /tmp | tail -1"
    told = await road.data("command.run", ".", scope="exec", input={"command": ["sh", "-c", script]})
    adjusted, kilobytes = told["stdout"].split()
    assert int(adjusted) >= 500
    if told["boundary"].startswith("bubblewrap"):
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        assert int(kilobytes) * 1024 <= memory // 8 + 4096

"""A tunnel that fails is tried again with growing pauses; what it says is bounded; nothing of it is left behind."""

import os
from pathlib import Path

import pytest

from computer_linker.system import is_running
from computer_linker.tunnels.record import FILE_NAME, TunnelRecord, read, save
from computer_linker.tunnels.supervisor import Pace
from support.service import is_alive, wait_for
from support.tunnels import Bench

pytestmark = pytest.mark.anyio


async def test_a_tunnel_that_dies_comes_back_under_its_new_address(bench: Bench) -> None:
    bench.program("cloudflared")
    async with bench.supervised("cloudflare"):
        first = await bench.until("running")
        (bench.folder / "die").touch()
        waiting = await bench.until("waiting")
        assert "Connection terminated" in (waiting.last_error or "")
        assert waiting.retry_at is not None and waiting.public_url is None
        second = await bench.until("running", count=2)
    assert (first.public_url, second.public_url) == (
        "https://stand-in-1.trycloudflare.com", "https://stand-in-2.trycloudflare.com",
    )  # fmt: skip
    assert second.restarts == 1


async def test_a_killed_tunnel_comes_back(bench: Bench) -> None:
    bench.program("cloudflared")
    async with bench.supervised("cloudflare"):
        record = await bench.until("running")
        os.kill(record.pid or 0, 9)
        await bench.until("running", count=2)
        assert len(bench.running()) == 1


async def test_a_lost_connection_is_told_while_the_program_looks_for_another(bench: Bench) -> None:
    bench.program("cloudflared")
    async with bench.supervised("cloudflare"):
        before = await bench.until("running")
        bench.say("WRN Lost connection with the edge connIndex=0")
        lost = await bench.until("reconnecting")
        assert (lost.public_url, lost.pid) == (before.public_url, before.pid)
        bench.say("INF Registered tunnel connection connIndex=0 location=fra08")
        await bench.until("running", count=2)
    assert len(bench.starts()) == 1


async def test_one_that_stood_before_is_never_given_up(bench: Bench) -> None:
    bench.program("cloudflared")
    async with bench.supervised("cloudflare"):
        await bench.until("running")
        bench.misbehave("ends")
        (bench.folder / "die").touch()
        await bench.until("waiting", count=6)
    assert "failed" not in [record.state for record in bench.heard]


async def test_after_so_many_failures_it_is_given_up_and_said(bench: Bench) -> None:
    bench.program("cloudflared")
    bench.misbehave("ends")
    async with bench.supervised("cloudflare"):
        failed = await bench.until("failed")
    assert len(bench.starts()) == 4
    assert "exit code 3" in (failed.last_error or "") and failed.hint
    assert not bench.running()


def test_pauses_double_up_to_a_bound_and_are_uneven() -> None:
    pace = Pace(first_s=1.0, most_s=300.0)
    for failures, middle in ((1, 1), (2, 2), (3, 4), (9, 256), (10, 300), (5000, 300)):
        pauses = {pace.pause(failures) for _ in range(50)}
        assert 0.75 * middle <= min(pauses) and max(pauses) <= 1.25 * middle
        assert len(pauses) > 10


@pytest.mark.parametrize("mode", ["rubbish", "hangs", "liar", "refuses"])
async def test_a_program_that_says_nothing_right_opens_nothing(bench: Bench, mode: str) -> None:
    bench.program("cloudflared")
    bench.misbehave(mode)
    bench.connect_s = 1.0
    async with bench.supervised("cloudflare"):
        record = await bench.until("waiting")
    assert all(heard.public_url is None and heard.state != "running" for heard in bench.heard)
    assert all(len(line) <= 4096 for line in record.output) and len(record.output) <= 20
    assert not bench.running()


async def test_what_the_program_started_ends_with_it(bench: Bench) -> None:
    bench.program("cloudflared")
    bench.misbehave("forks")
    async with bench.supervised("cloudflare"):
        await bench.until("running")
        told = bench.folder / "grandchild.pid"
        pid = int(wait_for(lambda: told.exists() and told.read_text()))
        assert is_alive(pid)
    assert not bench.running()
    wait_for(lambda: not is_alive(pid))


async def test_another_process_reads_what_is_open_and_what_is_lost(bench: Bench) -> None:
    bench.program("cloudflared")
    async with bench.supervised("cloudflare"):
        record = await bench.until("running")
        seen = read(bench.home)
        assert seen is not None and (seen.state, seen.public_url) == ("running", record.public_url)
        assert (bench.home / FILE_NAME).stat().st_mode & 0o777 == 0o600
    closed = read(bench.home)
    assert closed is not None and closed.state == "stopped"


def test_a_record_of_a_service_that_is_gone_is_lost_even_when_its_number_is_taken(tmp_path: Path) -> None:
    record = TunnelRecord(
        provider="cloudflare", state="running", public_url="https://x.trycloudflare.com", since="2026-01-01T00:00:00Z",
        service_pid=os.getpid(), service_started=1,
    )  # fmt: skip
    save(tmp_path, record)
    seen = read(tmp_path)
    assert seen is not None and (seen.state, seen.public_url) == ("lost", None)
    assert not is_running(os.getpid(), 1)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"state": "running"}', b"\x00" * 1000, b'{"a":' * 50_000])
def test_a_record_that_cannot_be_read_is_no_tunnel(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE_NAME).write_bytes(content)
    assert read(tmp_path) is None


async def test_secrets_in_the_output_are_not_kept(bench: Bench) -> None:
    from computer_linker.tunnels.running import _SECRET

    for line in ("Authorization: Bearer abcdefghijklmnop", 'token="abcdefghijklmnop"', "x" * 80):
        assert "abcdefghijklmnop" not in _SECRET.sub("(hidden)", line) and "x" * 64 not in _SECRET.sub("", line)

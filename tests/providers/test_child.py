"""Children of the providers: read whole, fenced, and gone when nobody waits for them."""

import os
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from computer_linker.computer.local.linux.fence import Fence, fence_around
from computer_linker.errors import InvalidRequest
from computer_linker.policy.writers import find_program
from computer_linker.providers.child import ProcessGroup, Spec, in_process_group
from support.children import children_of_this_process

pytestmark = pytest.mark.anyio


def said(argv: list[str], group: ProcessGroup | None = None, **parts: object) -> tuple[int, bytes, bytes]:
    with (group or ProcessGroup()).running(Spec(argv, "/", {}, **parts)) as child:  # type: ignore[arg-type]  # as the caller says
        out, _ = child.read_all(1 << 20)
        code, err = child.finish()
    return code, out, err


async def test_output_errors_and_exit_code_come_back() -> None:
    assert said(["/bin/sh", "-c", "echo out; echo err >&2; exit 3"]) == (3, b"out\n", b"err\n")
    assert said(["/bin/cat"], stdin=b"fed" * 100_000) == (0, b"fed" * 100_000, b"")


async def test_a_flood_on_stderr_blocks_nobody() -> None:
    code, out, err = said(["/bin/sh", "-c", "head -c 5000000 /dev/zero >&2; echo done"])
    assert (code, out, len(err)) == (0, b"done\n", 65_536)


async def test_what_a_child_left_behind_ends_with_it() -> None:
    code, out, _ = said(["/bin/sh", "-c", "sleep 600 >/dev/null 2>&1 & echo $!"])
    assert code == 0
    with anyio.fail_after(60):
        while Path(f"/proc/{int(out)}").exists() and "Z" not in Path(f"/proc/{int(out)}/stat").read_text().split()[2]:
            await anyio.lowlevel.checkpoint()


async def test_cancelling_ends_the_child_before_the_caller_goes_on() -> None:
    def work(group: ProcessGroup) -> object:
        return said(["/bin/sleep", "600"], group)

    with anyio.move_on_after(0.2) as scope:
        await in_process_group(work)
    assert scope.cancelled_caught
    assert children_of_this_process() == []


async def test_a_call_cancelled_while_it_waits_for_its_turn_never_starts() -> None:
    limiter = anyio.CapacityLimiter(1)
    started: list[str] = []
    limiter.acquire_on_behalf_of_nowait("another")
    with anyio.move_on_after(0.05) as scope:
        await in_process_group(lambda group: started.append("ran"), limiter)
    assert scope.cancelled_caught and started == []


async def test_a_failure_comes_back_as_it_is() -> None:
    def work(group: ProcessGroup) -> None:
        raise InvalidRequest("no")

    with pytest.raises(InvalidRequest):
        await in_process_group(work)


async def test_programs_are_not_found_through_the_search_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "very-odd-program").write_text("#!/bin/sh\n")
    (tmp_path / "very-odd-program").chmod(0o755)
    # The environment of the service itself is the input here.
    monkeypatch.setenv("PATH", f"{tmp_path}:.:" + os.environ["PATH"])
    assert find_program("very-odd-program") is None


async def test_a_fence_holds_reading_writing_and_executing_and_only_for_the_child(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.write_text("secret")
    (inside / "note").write_text("note")
    loader = [str(path) for folder in ("/lib64", "/lib") for path in Path(folder).glob("ld-*.so*")]
    enter = fence_around(
        Fence(
            ["/usr", "/lib", "/lib64", "/etc/ld.so.cache", str(inside)], [], [os.path.realpath("/usr/bin/cat"), *loader]
        )
    )
    if enter is None:
        pytest.skip("this kernel has no Landlock")
    assert said(["/usr/bin/cat", str(inside / "note")], enter=enter)[:2] == (0, b"note")
    assert said(["/usr/bin/cat", str(outside)], enter=enter)[:2] == (1, b"")
    with pytest.raises(PermissionError):
        said(["/usr/bin/touch", str(inside / "made")], enter=enter)
    assert not (inside / "made").exists()
    assert outside.read_text() == "secret"
    assert said(["/usr/bin/cat", str(outside)])[1] == b"secret"

"""file.copy between two computers: whole or absent, whatever happens on the way."""

import os
import subprocess
from pathlib import Path

import anyio
import pytest

from computer_linker.computer.local.portable.files import LocalFiles
from support.noise import noise
from support.pair import Pair

pytestmark = pytest.mark.anyio
SIZE = 5_000_000 + 17


async def test_a_file_is_sent_to_another_computer(pair: Pair) -> None:
    content = noise(SIZE)
    (pair.desk.root / "big.bin").write_bytes(content)
    sent = await pair.desk.call(
        "file.copy", "big.bin", input={"destination": "in/big.bin", "destinationScope": "laptop/app"},
        options={"createParents": True},
    )  # fmt: skip
    assert (sent["ok"], sent.get("effect")) == (True, "confirmed"), sent
    assert sent["data"] == {"from": "big.bin", "to": "laptop/app:in/big.bin"}
    assert (pair.laptop.root / "in" / "big.bin").read_bytes() == content


async def test_a_file_is_fetched_from_another_computer(pair: Pair) -> None:
    content = noise(SIZE)
    (pair.laptop.root / "big.bin").write_bytes(content)
    fetched = await pair.desk.call(
        "file.copy", "big.bin", input={"destination": "here.bin", "sourceScope": "laptop/app"}
    )
    assert (fetched["ok"], fetched.get("effect")) == (True, "confirmed"), fetched
    assert (pair.desk.root / "here.bin").read_bytes() == content


@pytest.mark.parametrize("size", [0, 1, 1 << 20, (1 << 20) + 1])
async def test_any_length_arrives_exactly(pair: Pair, size: int) -> None:
    content = noise(size)
    (pair.desk.root / "a.bin").write_bytes(content)
    assert (await _push(pair, "a.bin", "b.bin"))["ok"]
    assert (pair.laptop.root / "b.bin").read_bytes() == content
    back = await pair.desk.call("file.copy", "b.bin", input={"destination": "c.bin", "sourceScope": "laptop/app"})
    assert back["ok"], back
    assert (pair.desk.root / "c.bin").read_bytes() == content


async def test_a_taken_name_is_kept_unless_overwriting_was_asked_for(pair: Pair) -> None:
    (pair.desk.root / "new.txt").write_text("new")
    assert (await _push(pair, "new.txt", "a.txt"))["error"]["code"] == "already_exists"
    assert (pair.laptop.root / "a.txt").read_text() == "on the laptop"
    sent = await pair.desk.call(
        "file.copy", "new.txt", input={"destination": "a.txt", "destinationScope": "laptop/app"},
        options={"overwrite": True},
    )  # fmt: skip
    assert sent["ok"], sent
    assert (pair.laptop.root / "a.txt").read_text() == "new"


@pytest.mark.parametrize(
    ("target", "field", "scope", "destination", "codes"),
    [
        ("gone", "sourceScope", "laptop/app", "x", {"not_found"}),
        ("../x", "sourceScope", "laptop/app", "x", {"path_out_of_scope"}),
        (".env", "sourceScope", "laptop/app", "x", {"permission_denied"}),
        ("a.txt", "sourceScope", "laptop/app", "../x", {"path_out_of_scope"}),
        ("a.txt", "sourceScope", "laptop/other", "x", {"unknown_scope"}),
        ("a.txt", "sourceScope", "nobody/app", "x", {"unknown_scope"}),
        ("a.txt", "sourceScope", "laptop", "x", {"invalid_request"}),
        ("mine", "destinationScope", "laptop/app", ".git/hooks/pre-commit", {"permission_denied"}),
        ("mine", "destinationScope", "laptop/app", "../../x", {"path_out_of_scope"}),
        ("gone", "destinationScope", "laptop/app", "x", {"not_found"}),
        ("folder", "destinationScope", "laptop/app", "x", {"invalid_request"}),
        ("mine", "destinationScope", "nobody/app", "x", {"unknown_scope"}),
    ],
)
async def test_what_either_computer_refuses_leaves_nothing_on_either(
    pair: Pair, target: str, field: str, scope: str, destination: str, codes: set[str]
) -> None:
    (pair.desk.root / "mine").write_text("mine")
    (pair.desk.root / "folder").mkdir()
    (pair.laptop.root / ".env").write_text("SECRET=1")
    before = _names(pair)
    envelope = await pair.desk.call("file.copy", target, input={"destination": destination, field: scope})
    assert envelope["ok"] is False
    assert envelope["error"]["code"] in codes, envelope
    assert _names(pair) == before


async def test_a_peer_that_may_only_read_is_not_sent_anything(reading_pair: Pair) -> None:
    (reading_pair.desk.root / "mine").write_text("mine")
    assert (await _push(reading_pair, "mine", "theirs"))["error"]["code"] == "permission_denied"
    assert not (reading_pair.laptop.root / "theirs").exists()


async def test_a_client_cannot_claim_a_stream_that_is_not_there(pair: Pair) -> None:
    for scope in ("app", "laptop/app"):
        made = await pair.desk.call("file.create", "empty", scope=scope, input={"content": "", "encoding": "stream"})
        assert made["error"]["code"] == "invalid_request"
        read = await pair.desk.call("file.read", "a.txt", scope=scope, options={"encoding": "stream"})
        assert read["error"]["code"] in ("invalid_request", "not_found")
    assert not (pair.laptop.root / "empty").exists()
    assert not (pair.desk.root / "empty").exists()


@pytest.mark.parametrize("way", ["sourceScope", "destinationScope"])
async def test_a_computer_that_sends_without_end_is_cut_off_and_leaves_nothing(pair: Pair, way: str) -> None:
    """Either side may be the hostile one: the receiver says what it takes."""
    sender, receiver = (pair.laptop, pair.desk) if way == "sourceScope" else (pair.desk, pair.laptop)
    with (sender.root / "endless").open("wb") as made:
        made.truncate(1 << 40)
    files = receiver.app.computer.files
    assert isinstance(files, LocalFiles)
    files.room.largest = 20 << 20
    with anyio.fail_after(60):
        envelope = await pair.desk.call("file.copy", "endless", input={"destination": "x", way: "laptop/app"})
    assert envelope["error"]["code"] == "limit_exceeded", envelope
    assert envelope["error"]["details"]["maxBytes"] == 20 << 20
    assert [path.name for path in receiver.root.iterdir() if path.name != "a.txt"] == []
    assert (await pair.desk.call("file.read", "a.txt", scope="laptop/app"))["ok"]


async def test_a_copy_from_afar_never_takes_the_last_of_the_disk(pair: Pair, tmp_path: Path) -> None:
    """The limit is the free disk: a small one of the test's own holds the desk's scope and its state."""
    disk = pair.desk.root
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=40m", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("mounting a tmpfs needs root and CAP_SYS_ADMIN")
    try:
        files = pair.desk.app.computer.files
        assert isinstance(files, LocalFiles)
        files.room.keep_for(disk)
        with (pair.laptop.root / "large").open("wb") as made:
            made.truncate(1 << 33)
        envelope = await pair.desk.call("file.copy", "large", input={"destination": "x", "sourceScope": "laptop/app"})
        assert envelope["error"]["code"] == "limit_exceeded", envelope
        assert envelope["error"]["details"]["freeBytes"] >= 16 << 20
        assert list(disk.iterdir()) == []
        assert os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize > 39 << 20
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


async def _push(pair: Pair, target: str, destination: str) -> dict:  # type: ignore[type-arg]  # an envelope
    return await pair.desk.call(
        "file.copy", target, input={"destination": destination, "destinationScope": "laptop/app"}
    )


def _names(pair: Pair) -> list[Path]:
    return sorted([*pair.desk.root.rglob("*"), *pair.laptop.root.rglob("*")])

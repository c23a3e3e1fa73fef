"""What a program leaves in a view, and what a client and the owner are shown of it, reach no further than they show."""

import os
from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from computer_linker.approvals.approvals import Approvals
from computer_linker.errors import Conflict
from computer_linker.providers.views.changes import Comparison
from computer_linker.providers.views.keeping import Copied
from support.road import Road, folder_scope

pytestmark = pytest.mark.anyio
REPOSITORY = (
    "mkdir -p objects refs hooks; echo 'ref: refs/heads/main' > HEAD; printf '[core]\\nfsmonitor=x\\n' > config"
)


@pytest.fixture
async def road(tmp_path: Path) -> AsyncIterator[Road]:
    root = tmp_path / "root"
    for name in ("d/sub", "docs", "src"):
        (root / name).mkdir(parents=True)
    (root / "d/sub/old").write_text("old\n")
    (root / "docs/plan.txt").write_text("the plan, long enough\n")
    scopes = [
        folder_scope(root, "app", allowedCommands=["*"]),
        folder_scope(root, "asks", allowedCommands=["*"], outcome="ask"),
    ]
    async with Road.open(tmp_path, scopes) as opened:
        yield opened


async def viewed(road: Road, script: str, scope: str = "app") -> str:
    ran = await road.data(
        "command.run", ".", scope=scope, input={"command": ["sh", "-c", script]}, options={"view": True}
    )
    assert ran["exitCode"] == 0, ran
    view_id: str = ran["view"]["viewId"]
    return view_id


async def asked(road: Road, script: str) -> Any:
    """The request that keeping what the script changed makes."""
    refused = await road.call("view.keep", await viewed(road, script, "asks"), scope="asks")
    assert refused["error"]["code"] == "confirm_required"
    wanted = refused["error"]["details"]["approvalId"]
    return next(each for each in road.app.services.use(Approvals).waiting() if each.id == wanted)


@pytest.mark.parametrize("place", ["g", "w/g", "src"])
async def test_no_view_plants_a_repository_for_git(road: Road, place: str) -> None:
    view_id = await viewed(
        road, f"mkdir -p {place}; cd {place}; {REPOSITORY}; echo x > hooks/post-checkout; echo ok > fine"
    )
    shown = await road.data("view.show", view_id)
    assert {f"{place}/{name}" for name in ("HEAD", "config", "objects", "refs", "hooks")} <= {
        each["path"] for each in shown["refused"]
    }
    await road.data("view.keep", view_id)
    assert {path.name for path in (road.root / place).iterdir()} == {"fine"}


async def test_no_view_plants_a_repository_in_parts(road: Road) -> None:
    view_id = await viewed(road, "mkdir -p g/objects g/refs; echo 'ref: refs/heads/main' > g/head")
    await road.data("view.keep", view_id)
    again = await viewed(
        road, "mv g/x g/HEAD 2>/dev/null || echo 'ref: refs/heads/main' > g/HEAD; mkdir -p g/objects g/refs"
    )
    await road.call("view.keep", again)
    there = {path.name for path in (road.root / "g").iterdir()}
    assert not {"HEAD", "objects", "refs"} <= there, there


async def test_a_folder_made_anew_shows_what_is_gone_below_it(road: Road) -> None:
    view_id = await viewed(road, "rm -rf d; mkdir -p d/sub; test ! -e d/sub/old")
    shown = await road.data("view.show", view_id)
    assert [(each["path"], each["action"]) for each in shown["changes"]] == [("d/sub/old", "removed")]
    await road.data("view.keep", view_id)
    assert (road.root / "d/sub").is_dir() and not (road.root / "d/sub/old").exists()


async def test_a_person_sees_where_a_renamed_file_was(road: Road) -> None:
    request = await asked(road, "mv docs/plan.txt src/x")
    assert "renamed src/x from docs/plan.txt" in request.text
    # A yes for the folder `src` does not let files go from elsewhere.
    assert set(request.about.paths) == {"src/x", "docs/plan.txt"}


async def test_a_person_sees_modes_and_where_links_lead(road: Road) -> None:
    request = await asked(road, "ln -s /etc/passwd link; echo x > run; chmod 755 run; chmod 777 d")
    assert "added link (symlink" in request.text and "+/etc/passwd" in request.text
    assert "added run (file, mode 0755)" in request.text and "changed d (directory, mode 0777)" in request.text


async def test_no_name_and_no_content_paints_over_what_a_person_is_shown(road: Road) -> None:
    make = "import os; open('a\\x1b[2J\\nremoved nothing', 'w').write('x\\x1b[8m\\u202e\\n')"
    request = await asked(road, f'python3 -c "{make}"')
    lines = "\n".join(request.about.lines)
    assert "\x1b" not in lines and "\u202e" not in lines
    assert not any(line.startswith("removed nothing") for line in lines.splitlines())


async def test_much_text_hides_no_change_without_a_word(road: Road) -> None:
    request = await asked(road, "for n in $(seq 100 999); do seq 1 60 > a$n; done; echo evil > z")
    assert "added z" in request.text or "more changes, which are not shown here" in request.text


async def test_a_file_of_holes_does_not_fill_the_disk(road: Road) -> None:
    await road.data("view.keep", await viewed(road, "truncate -s 300M big; echo end >> big; truncate -s 400M big"))
    found = (road.root / "big").stat()
    assert found.st_size == 400 << 20 and found.st_blocks * 512 < 16 << 20
    with (road.root / "big").open("rb") as file:
        file.seek(300 << 20)
        assert file.read(5) == b"end\n\0"


def test_a_folder_where_another_file_system_is_mounted_is_not_removed(tmp_path: Path) -> None:
    upper, lower = os.open(tmp_path, os.O_RDONLY), os.open("/dev", os.O_RDONLY)
    try:
        if os.stat("/dev/pts").st_dev == os.fstat(lower).st_dev:
            pytest.skip("no file system is mounted on /dev/pts")
        os.mknod(tmp_path / "pts", 0o20000, 0)
        changes = Comparison(upper, lower, base_ns=1 << 62).run()
    finally:
        os.close(upper)
        os.close(lower)
    assert [(change.parts, change.is_conflict) for change in changes] == [(("pts",), True)]


def test_what_changes_after_it_was_chosen_is_not_kept(tmp_path: Path) -> None:
    for name in ("upper", "lower", "kept"):
        (tmp_path / name).mkdir()
    (tmp_path / "upper/f").write_text("shown")
    held = [os.open(tmp_path / name, os.O_RDONLY) for name in ("upper", "lower", "kept")]
    try:
        (change,) = Comparison(held[0], held[1], base_ns=0).run()
        assert change.after is not None
        (tmp_path / "upper/f").write_text("other")
        os.utime(tmp_path / "upper/f", ns=(change.after.modified_ns, change.after.modified_ns))
        with pytest.raises(Conflict):
            Copied({("f",): change.after}, held[2], None).copy(held[0], ("f",), "copy")
    finally:
        for each in held:
            os.close(each)


async def test_no_part_of_what_would_be_kept_is_hidden(road: Road) -> None:
    """Found: the middle of a long difference and the end of a long line were nowhere in what a person saw."""
    long = "python3 -c \"print('echo ok' + ' ' * 500 + '; PAYLOAD-OFF-THE-EDGE')\" > b.sh"
    request = await asked(road, f"(seq 1 150; echo PAYLOAD-IN-THE-MIDDLE; seq 1 150) > a.sh; {long}")
    assert "+PAYLOAD-IN-THE-MIDDLE" in request.text and "PAYLOAD-OFF-THE-EDGE" in request.text


async def test_a_person_is_told_the_size_and_digest_of_a_whole_large_file(road: Road) -> None:
    """Found: of a large file the first 200,001 bytes were counted and digested, so that a change behind them was none."""
    old = b"a" * 300_000
    (road.root / "large").write_bytes(old)
    (road.root / "same").write_bytes(old)
    request = await asked(
        road, "printf evil | dd of=large bs=1 seek=299990 conv=notrunc; chmod 700 same; truncate -s 300M huge"
    )
    new = old[:299_990] + b"evil" + old[299_994:]
    assert "300000 bytes now, 300000 bytes then" in request.text, request.text
    assert f"was sha256 {sha256(old).hexdigest()}" in request.text
    assert f"becomes sha256 {sha256(new).hexdigest()}" in request.text
    # What has the same content is shown by its mode alone, and what takes long to digest by its size.
    about = request.about.lines
    assert about[-1] == "changed same (file, mode 0700)"
    assert f"  not there now, {300 << 20} bytes then; it cannot be read here" in about
    assert "  becomes too large for a digest here" in about


async def test_a_person_sees_how_much_goes_with_a_folder(road: Road) -> None:
    request = await asked(road, "rm -r d; rm docs/plan.txt; rmdir src; echo x > src")
    assert "removed d (directory with 2 names in it)" in request.text, request.text
    assert "removed docs/plan.txt (22 bytes)" in request.text
    assert "changed src (a directory with 0 names in it goes) (file, mode 0644)" in request.text


async def test_a_renamed_file_that_its_owner_changed_meanwhile_is_a_conflict(road: Road) -> None:
    """Found: a changed mode of the file under its old name was lost with that name."""
    view_id = await viewed(road, "mv docs/plan.txt src/x; mv d/sub/old src/y")
    (road.root / "docs/plan.txt").chmod(0o700)
    shown = await road.data("view.show", view_id)
    assert shown["conflicts"] == ["src/x"], shown
    assert await road.code("view.keep", view_id) == "conflict"
    assert (road.root / "docs/plan.txt").stat().st_mode & 0o777 == 0o700 and os.listdir(road.root / "src") == []


async def test_what_cannot_be_shown_cannot_be_allowed(road: Road) -> None:
    make = "for n in range(3000): open(f'a{n}', 'w').write(f'{n} ' * 50)"
    request = await asked(road, f'python3 -c "{make}"')
    assert not request.can_be_allowed and "cannot be shown at once" in request.text

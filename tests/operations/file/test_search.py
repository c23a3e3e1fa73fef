"""file.search and file.find along the whole road: what they find, what they refuse, and what they leave behind."""

import os
import threading
from pathlib import Path

import anyio
import pytest

from support.children import children_of_this_process
from support.road import Road, folder_scope

pytestmark = pytest.mark.anyio
CANARY = "CANARY-OUT-7f3a"


async def paths(road: Road, query: str, target: str = ".", **options: object) -> list[str]:
    data = await road.data("file.search", target, input={"query": query}, options=options)
    return [match["path"] for match in data["matches"]]


async def test_a_match_has_its_line_its_column_in_characters_and_its_context(road: Road) -> None:
    (road.root / "sub").mkdir()
    (road.root / "sub" / "notes.txt").write_text("one\ntwo\näöü three here\nfour\n")
    data = await road.data("file.search", input={"query": "three"}, options={"contextBefore": 1, "contextAfter": 1})
    assert data == {
        "matches": [
            {
                "path": "sub/notes.txt",
                "line": 3,
                "column": 5,
                "preview": "äöü three here",
                "before": ["two"],
                "after": ["four"],
            }
        ],
        "binaryFiles": [],
        "engine": "ripgrep",
        "truncated": False,
        "nextCursor": None,
    }


async def test_one_file_can_be_the_target(road: Road) -> None:
    (road.root / "a.txt").write_text("x\nneedle\n")
    (road.root / "b.txt").write_text("needle\n")
    assert await paths(road, "needle", "a.txt") == ["a.txt"]


async def test_a_preview_is_bounded_around_the_match(road: Road) -> None:
    (road.root / "wide.txt").write_text("x" * 5000 + "needle" + "y" * 5000 + "\n")
    match = (await road.data("file.search", input={"query": "needle"}))["matches"][0]
    assert match["column"] == 5001
    assert "needle" in match["preview"]
    assert len(match["preview"]) < 320


async def test_a_line_too_long_to_hold_is_still_found(road: Road) -> None:
    with (road.root / "one.txt").open("wb") as file:
        for _ in range(300):
            file.write(b"a" * 1_000_000)
        file.write(b"\nlast needle\n")
    (road.root / "two.txt").write_text("a\n")
    data = await road.data("file.search", input={"query": "a"}, options={"maxResults": 10})
    assert [(m["path"], m["line"], m["column"]) for m in data["matches"]] == [
        ("one.txt", 1, 1),
        ("one.txt", 2, 2),
        ("two.txt", 1, 1),
    ]
    assert all(len(match["preview"]) < 400 for match in data["matches"])
    again = await road.data("file.search", "one.txt", input={"query": "a"}, options={"maxResults": 10})
    assert again["matches"] == data["matches"][:2]


@pytest.mark.parametrize("name", [".env", "id_rsa", "server.pem", ".ssh/config"])
@pytest.mark.parametrize("glob", [None, "!!**", "**", "*", "{.env,*}", "!*.txt", ".*", "**/.*/*", "[.]env"])
async def test_sensitive_files_are_absent_whatever_the_glob(road: Road, name: str, glob: str | None) -> None:
    (road.root / name).parent.mkdir(exist_ok=True)
    (road.root / name).write_text(f"TOKEN={CANARY}\n")
    options = {"includeHidden": True, "gitignore": False} | ({} if glob is None else {"glob": glob})
    envelope = await road.call("file.search", input={"query": "TOKEN"}, options=options)
    assert CANARY not in str(envelope)
    if glob is not None:
        found = await road.call("file.find", input={"pattern": glob}, options={"includeHidden": True})
        assert name not in str(found)


async def test_denied_paths_of_the_scope_are_absent(tmp_path: Path) -> None:
    scope = folder_scope(tmp_path / "root", deniedPaths=["private/**"])
    async with Road.open(tmp_path, [scope]) as road:
        (road.root / "private").mkdir()
        (road.root / "private" / "a.txt").write_text("needle\n")
        (road.root / "open.txt").write_text("needle\n")
        assert await paths(road, "needle") == ["open.txt"]
        assert (await road.data("file.find", input={"pattern": "*.txt"}))["files"] == ["open.txt"]
        assert await road.code("file.search", "private", input={"query": "needle"}) == "permission_denied"


@pytest.mark.parametrize(
    "query",
    ["--files", "--pre=./x.sh", "-f/etc/passwd", "--help", "-e", "--", "-", "--search-zip", "--hostname-bin=./x.sh"],
)
async def test_a_query_is_never_an_option(road: Road, query: str) -> None:
    marker = road.root.parent / "marker"
    script = road.root / "x.sh"
    script.write_text(f"#!/bin/sh\ntouch {marker}\n")
    script.chmod(0o755)
    (road.root / "said.txt").write_text(f"say {query} here\n")
    data = await road.data("file.search", input={"query": query}, options={"fixedStrings": True, "glob": "*.txt"})
    assert [match["path"] for match in data["matches"]] == ["said.txt"]
    assert not marker.exists()


@pytest.mark.parametrize("glob", ["--pre=./x.sh", "-L", "--files", "--no-ignore", "-uuu"])
async def test_a_glob_or_a_target_is_never_an_option(road: Road, glob: str) -> None:
    marker = road.root.parent / "marker"
    script = road.root / "x.sh"
    script.write_text(f"#!/bin/sh\ntouch {marker}\n")
    script.chmod(0o755)
    await road.call("file.search", input={"query": "x"}, options={"glob": glob})
    await road.call("file.find", input={"pattern": glob})
    assert await road.code("file.search", glob, input={"query": "x"}) == "not_found"
    assert not marker.exists()


async def test_links_out_of_the_scope_lead_nowhere(road: Road) -> None:
    outside = road.root.parent / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text(CANARY)
    (road.root / "ln").symlink_to(outside / "secret.txt")
    (road.root / "up").symlink_to("../outside")
    (road.root / "dir").symlink_to(outside)
    for target in ("ln", "dir", "up", "up/secret.txt", "dir/secret.txt"):
        assert await road.code("file.search", target, input={"query": "CANARY"}) == "path_out_of_scope"
        assert await road.code("file.find", target, input={"pattern": "*"}) == "path_out_of_scope"
    assert await paths(road, "CANARY") == []


async def test_a_folder_swapped_for_a_link_while_it_is_searched_leads_nowhere(road: Road, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "deep").mkdir(parents=True)
    (outside / "deep" / "secret.txt").write_text(CANARY)
    real = road.root / "d"
    (real / "deep").mkdir(parents=True)
    (real / "deep" / "secret.txt").write_text("harmless")
    (road.root / "other").symlink_to(outside)
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            real.rename(road.root / "aside")
            (road.root / "other").rename(real)
            real.rename(road.root / "other")
            (road.root / "aside").rename(real)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for _ in range(60):
            assert CANARY not in str(await road.call("file.search", ".", input={"query": "CANARY"}))
            assert CANARY not in str(await road.call("file.search", "d", input={"query": "CANARY"}))
            assert CANARY not in str(await road.call("file.search", "d/deep/secret.txt", input={"query": "CANARY"}))
    finally:
        stop.set()
        thread.join()


async def test_a_harmless_link_to_a_sensitive_file_is_refused(road: Road) -> None:
    (road.root / ".env").write_text(CANARY)
    (road.root / "notes.txt").symlink_to(".env")
    assert await road.code("file.search", "notes.txt", input={"query": "CANARY"}) == "permission_denied"


async def test_a_file_with_other_names_is_said_to_have_them(road: Road, tmp_path: Path) -> None:
    (tmp_path / "outside.txt").write_text("needle\n")
    (road.root / "hl.txt").hardlink_to(tmp_path / "outside.txt")
    for target in (".", "hl.txt"):
        envelope = await road.call("file.search", target, input={"query": "needle"})
        assert "hardlink" in str(envelope["warnings"])


async def test_a_link_inside_the_scope_may_be_the_target(road: Road) -> None:
    (road.root / "real").mkdir()
    (road.root / "real" / "a.txt").write_text("needle\n")
    (road.root / "alias").symlink_to("real")
    assert await paths(road, "needle", "alias") == ["real/a.txt"]


async def test_special_files_are_skipped_and_refused(road: Road) -> None:
    os.mkfifo(road.root / "pipe")
    (road.root / "a.txt").write_text("needle\n")
    with anyio.fail_after(60):
        assert await paths(road, "needle") == ["a.txt"]
        assert await road.code("file.search", "pipe", input={"query": "x"}) == "invalid_request"


@pytest.mark.parametrize("query", ["a\nb", "a\rb", "a\0b", "", "a(", "(?=x)", "\\1"])
async def test_a_query_that_makes_no_sense_is_the_callers_mistake(road: Road, query: str) -> None:
    assert await road.code("file.search", input={"query": query}) == "invalid_request"


@pytest.mark.parametrize("glob", ["[", "{a", "a}", "../*", "a/../b", "x\\", "{a,b}" * 12, "", "a\nb"])
async def test_a_glob_that_makes_no_sense_is_the_callers_mistake(road: Road, glob: str) -> None:
    assert await road.code("file.search", input={"query": "a"}, options={"glob": glob}) == "invalid_request"
    assert await road.code("file.find", input={"pattern": glob}) == "invalid_request"


async def test_a_flood_of_matches_is_cut_and_leaves_no_child(road: Road) -> None:
    (road.root / "flood.txt").write_bytes(b"a\n" * 20_000_000)
    with anyio.fail_after(20):
        data = await road.data("file.search", input={"query": "a"}, options={"maxResults": 1_000_000_000})
    assert len(data["matches"]) == 1000
    assert data["truncated"]
    again = await road.data(
        "file.search", input={"query": "a"}, options={"maxResults": 5, "cursor": data["nextCursor"]}
    )
    assert [match["line"] for match in again["matches"]] == [1001, 1002, 1003, 1004, 1005]
    assert children_of_this_process() == []


async def test_cancelling_ends_the_child_at_once(road: Road) -> None:
    (road.root / "big.txt").write_bytes((b"a" * 100 + b"\n") * 3_000_000)
    with anyio.move_on_after(0.05) as scope:
        await road.call("file.search", input={"query": "[a-c]{101}"})
    assert scope.cancelled_caught
    assert children_of_this_process() == []


async def test_a_binary_file_is_named_and_its_lines_are_not_shown(road: Road) -> None:
    (road.root / "late.bin").write_bytes(b"needle\n" + b"x\n" * 200_000 + b"\0\0")
    (road.root / "early.bin").write_bytes(b"needle\0\n")
    data = await road.data("file.search", input={"query": "needle"})
    assert data["matches"] == [] and data["binaryFiles"] == ["late.bin"]
    named = await road.data("file.search", "early.bin", input={"query": "needle"})
    assert named["matches"] == [] and named["binaryFiles"] == ["early.bin"]


async def test_odd_names_are_whole(road: Road) -> None:
    for name in (b"new\nline.txt", b"tab\t.txt", b'quote".txt', b"bad\xff.txt", b" lead.txt"):
        Path(os.fsdecode(os.fsencode(road.root) + b"/" + name)).write_text("needle\n")
    expected = sorted(["new\nline.txt", "tab\t.txt", 'quote".txt', "bad\\xff.txt", " lead.txt"])
    assert sorted(await paths(road, "needle")) == expected
    assert sorted((await road.data("file.find", input={"pattern": "*.txt"}))["files"]) == expected


async def test_a_workspace_cannot_bring_its_own_program_or_settings(
    road: Road, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = road.root.parent / "marker"
    fake = road.root / "rg"
    fake.write_text(f"#!/bin/sh\ntouch {marker}\n")
    fake.chmod(0o755)
    settings = road.root / "ripgreprc"
    settings.write_text(f"--pre={fake}\n")
    # The environment of the service itself is the input here.
    monkeypatch.setenv("PATH", f".:{road.root}:" + os.environ["PATH"])
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(settings))
    (road.root / "a.txt").write_text("hi\n")
    assert await paths(road, "hi") == ["a.txt"]
    assert not marker.exists()


async def test_a_cursor_of_another_query_or_a_forged_one_is_refused(road: Road) -> None:
    for number in range(5):
        (road.root / f"{number}.txt").write_text("needle\n")
    first = await road.data("file.search", input={"query": "needle"}, options={"maxResults": 2})
    rest = {"cursor": first["nextCursor"]}
    assert await paths(road, "needle", **rest) == ["2.txt", "3.txt", "4.txt"]
    assert await road.code("file.search", input={"query": "other"}, options=rest) == "invalid_request"
    for forged in ("x", "W10", "bnVsbA", "WyIuLi8uLi9ldGMiLCAxLCAieCJd", "W" * 5000):
        assert (
            await road.code("file.search", input={"query": "needle"}, options={"cursor": forged}) == "invalid_request"
        )


async def test_a_tree_that_changes_under_the_walk_still_answers(road: Road) -> None:
    for number in range(300):
        (road.root / f"d{number}").mkdir()
        (road.root / f"d{number}" / "f.txt").write_text("needle\n")

    async def churn() -> None:
        for number in range(300):
            (road.root / f"d{number}").rename(road.root / f"e{number}")
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as group:
        group.start_soon(churn)
        for _ in range(5):
            assert (await road.call("file.search", input={"query": "needle"}))["ok"]


async def test_a_byte_order_mark_is_found_where_a_file_starts_with_it(road: Road) -> None:
    """Defect: a search for U+FEFF left out a file that starts with it."""
    (road.root / "start.txt").write_bytes("\ufeffone\n".encode())
    (road.root / "inside.txt").write_bytes("a\ufeffb\n".encode())
    for query in ("\ufeff", r"\x{FEFF}", r"\uFEFF"):
        assert await paths(road, query) == ["inside.txt", "start.txt"], query
    assert await paths(road, "\ufeff", "start.txt", fixedStrings=True) == ["start.txt"]
    assert await paths(road, "^one") == ["start.txt"]

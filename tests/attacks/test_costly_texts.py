"""Texts chosen to make a comparison slow: a patch that misses, a change that is shown, a page full of names. None holds anybody up."""

import time
from pathlib import Path

import anyio
import pytest

from computer_linker.changes.difference import diff_lines
from computer_linker.computer.facets.accessibility import Element, ElementId
from computer_linker.providers.refs import likeness
from support.road import Road, folder_scope

pytestmark = pytest.mark.anyio

WITHIN_S = 40.0
"""Generous for a busy machine; each of these took from forty seconds to many minutes."""


def hard(first: int, count: int) -> str:
    """Alike in two letters of three, and never in more than two at once: the costliest kind to align."""
    return "".join("aa" + chr(first + number) for number in range(count))


def lines(*, with_others: bool) -> str:
    return "".join(f"{number % 100}\n" + (f"F{number}\n" if with_others else "") for number in range(2500))


async def test_an_edit_that_misses_costs_little_whatever_it_misses(tmp_path: Path) -> None:
    async with Road.open(tmp_path) as road:
        text = "x\n" + hard(0x6E00, 667) + "\n"
        (tmp_path / "root" / "a.txt").write_text(text)
        with anyio.fail_after(WITHIN_S):
            edits = [{"oldText": hard(0x4E00, 667), "newText": "y"}]
            missed = await road.call("file.patch", "a.txt", scope="app", input={"edits": edits})
        assert missed["error"]["code"] == "conflict"
        assert (tmp_path / "root" / "a.txt").read_text() == text


async def test_what_a_person_is_shown_costs_little_whatever_it_shows(tmp_path: Path) -> None:
    scope = folder_scope(tmp_path / "root", "app", confirm="all")
    async with Road.open(tmp_path, scopes=[scope]) as road:
        before = lines(with_others=False) * 2
        (tmp_path / "root").mkdir(exist_ok=True)
        (tmp_path / "root" / "a.txt").write_text(before)
        with anyio.fail_after(WITHIN_S):
            asked = await road.call("file.write", "a.txt", scope="app", input={"content": lines(with_others=True)})
        assert asked["error"]["code"] == "confirm_required"
        assert (tmp_path / "root" / "a.txt").read_text() == before


def test_a_change_too_costly_to_compare_is_told_by_its_digest() -> None:
    old, new = (lines(with_others=False) * 2).encode(), lines(with_others=True).encode()
    told = diff_lines("a.txt", old, new, until=time.monotonic() - 1)
    assert told[0].startswith("a.txt: ") and "becomes sha256 " in told[1] and len(told) == 2


@pytest.mark.parametrize(
    ("name", "text"), [("justfile", "a" + " " * 1_500_000), ("Makefile", "a" + " b" * 500_000 + "!")]
)
async def test_a_manifest_of_one_long_line_costs_little(tmp_path: Path, name: str, text: str) -> None:
    async with Road.open(tmp_path) as road:
        (tmp_path / "root" / name).write_text(text + "\nok:\n\ttrue\n")
        with anyio.fail_after(WITHIN_S):
            listed = await road.call("package.list", ".", scope="app")
        assert [script["name"] for script in listed["data"]["scripts"]] == ["ok"]


async def test_a_rule_with_several_stars_judges_a_long_argument_at_once(tmp_path: Path) -> None:
    scope = folder_scope(tmp_path / "root", "app", allowedCommands=["touch *a*a*b"])
    async with Road.open(tmp_path, scopes=[scope]) as road:
        with anyio.fail_after(WITHIN_S):
            refused = await road.call("command.run", ".", scope="app", input={"command": ["touch", "a" * 30_000]})
        assert refused["error"]["code"] == "permission_denied"
        assert (await road.call("command.run", ".", scope="app", input={"command": ["touch", "xaxaxb"]}))["ok"]


def test_a_page_full_of_hard_names_is_judged_in_no_time() -> None:
    seen = Element(ElementId("app", "e0"), None, "button", hard(0x4E00, 66), ())
    crowd = [Element(ElementId("app", f"e{n}"), None, "button", hard(0x5000 + n, 66), ()) for n in range(1, 2000)]
    started = time.process_time()
    scores = [likeness(seen, (), one, (), seen_window=None, now_window=None) for one in crowd]
    assert time.process_time() - started < WITHIN_S
    assert max(scores) <= 0.5


@pytest.mark.parametrize(
    "command",
    [
        "env " * 3000 + "true",
        ["env"] * 3000 + ["true"],
        ["env"] * 250 + ["true"],
        ["env"] + ["rm"] * 250,
        "xargs " * 3000 + "true",
        "echo " + "${a:-" * 5000 + "x" + "}" * 5000,
        "echo " + '"$(' * 5000 + "x" + ')"' * 5000,
        "cat <<A; " * 3500,
    ],
    ids=["line", "argv", "many", "denied", "xargs", "nested", "quoted", "here-documents"],
)
async def test_a_command_is_judged_in_little_time_whatever_its_words(tmp_path: Path, command: str | list[str]) -> None:
    """Each took up to a minute, in which the service answered no other client."""
    scope = folder_scope(
        tmp_path / "root", allowedCommands=["make *"], deniedCommands=["rm -rf *", "sudo *"], allowShell=True
    )
    async with Road.open(tmp_path, [scope]) as road:
        began = time.process_time()
        refused = await road.call("command.run", ".", input={"command": command})
        spent = time.process_time() - began
    assert refused["error"]["code"] == "permission_denied", refused
    assert spent < 5, spent

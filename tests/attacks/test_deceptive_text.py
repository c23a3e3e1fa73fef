"""What a person is shown has no character that hides, turns, or passes for another."""

import re
import time
from dataclasses import replace
from pathlib import Path

import pytest

from computer_linker.approvals.approvals import Approvals
from computer_linker.approvals.terminal import shown
from computer_linker.errors import LimitExceeded
from computer_linker.policy.digest import canonical_request
from computer_linker.policy.visible_text import client_label, escaped
from support.road import LOCAL, Road, folder_scope

pytestmark = pytest.mark.anyio

HIDDEN = "\u202e\u2066\u2069\u200b\u200d\ufeff\u00ad\x1b\x07\x85\u2028\u115f\u3164\u2800\u00a0\U000e0061"


@pytest.mark.parametrize("char", HIDDEN, ids=lambda char: f"{ord(char):x}")
async def test_nothing_hidden_reaches_a_person_in_any_part_of_a_question(tmp_path: Path, char: str) -> None:
    name = f"a{char}b.txt"
    async with Road.open(tmp_path, [folder_scope(tmp_path / "root", confirm="all")]) as road:
        who = replace(LOCAL, client=f"Client{char}")
        refused = await road.call("file.write", name, input={"content": f"x{char}y"}, principal=who)
        assert refused["error"]["code"] == "confirm_required", refused
        (asked,) = road.app.services.use(Approvals).waiting()
        texts = [asked.text, asked.asker, asked.preview, str(shown(asked))]
        assert all(char not in text for text in texts)
        assert not (road.root / name).exists()


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("p\u0430ypal.com", "p\\u0430ypal.com"),
        ("\u0440\u043e\u0440\u0435", "\\u0440\\u043e\\u0440\\u0435"),
        ("\u0421laude", "\\u0421laude"),
        ("\uff52\uff4d", "\uff52\uff4d"),
        ("\uff52\uff4d\uff41", "\\uff52\\uff4d\\uff41"),
        ("etc\u2215passwd", "etc\\u2215passwd"),
        ("a\u2024b", "a\\u2024b"),
        ("\U0001d5cb\U0001d5c6x", "\\U0001d5cb\\U0001d5c6x"),
    ],
)
def test_a_look_alike_is_written_out(text: str, seen: str) -> None:
    assert escaped(text) == seen


@pytest.mark.parametrize(
    "text",
    ["Привет, мир", "я и ты", "Ελληνικά", "日本語のファイル.txt", "naïve café — “quoted”", "5 µm, nº 2, x²", "Δx = π"],
)
def test_honest_text_of_other_scripts_stays_readable(text: str) -> None:
    assert escaped(text) == text


@pytest.mark.parametrize(
    "value", [list(range(99_000)), {f"k{n}": n for n in range(49_000)}, [[[n]] for n in range(30_000)]]
)
def test_a_request_of_very_many_parts_is_refused_before_it_is_worked_on(value: object) -> None:
    began = time.process_time()
    with pytest.raises(LimitExceeded):
        canonical_request("app", "file.write", "a", {"x": value}, None)
    assert time.process_time() - began < 0.05


async def test_such_a_request_puts_no_question(tmp_path: Path) -> None:
    async with Road.open(tmp_path, [folder_scope(tmp_path / "root", confirm="all", allowedCommands=["*"])]) as road:
        command = {"command": ["a"] * 20_000}
        for op, given in (("confirm.issue", {"op": "command.run", "input": command}), ("command.run", command)):
            refused = await road.call(op, input=given)
            assert refused["error"]["code"] in ("limit_exceeded", "invalid_request"), refused
        assert road.app.services.use(Approvals).waiting() == []


NAMES = {
    "claude-code/2.1 (local:me) wants file.read in scope app:": False,
    "claude-code/2.1 wants file.read in app": False,
    "ok (owner)": False,
    "approved by owner/1": False,
    "asked_by_you": False,
    'x" (owner) wants "y': False,
    "evil\n\nnothing": False,
    "claude-code/2.1": True,
    "Visual Studio Code/1.99": True,
    "@scope/my_client/0.1": True,
}


@pytest.mark.parametrize("name", NAMES)
def test_a_clients_name_does_not_run_on_into_the_sentence_it_stands_in(name: str) -> None:
    seen = client_label(name)
    assert (seen == name) is NAMES[name]
    assert NAMES[name] or re.fullmatch(r'client "[^"\n]*"', seen), seen

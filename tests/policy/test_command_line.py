"""A command line becomes one argv, or is refused: never what a shell would make of it."""

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from computer_linker.errors import InvalidRequest
from computer_linker.policy.command_line import MAX_TEXT, ShellNeeded, split, to_argv

PLAIN = {
    "git log": ["git", "log"],
    "  git\tlog  -n 1 ": ["git", "log", "-n", "1"],
    "echo 'a b' \"c d\"": ["echo", "a b", "c d"],
    "echo a'b'\"c\"": ["echo", "abc"],
    "echo ''": ["echo", ""],
    r"echo a\ b \; \$HOME": ["echo", "a b", ";", "$HOME"],
    r'echo "a\"b" "c\d"': ["echo", 'a"b', r"c\d"],
    "echo 'it is $HOME; `x`'": ["echo", "it is $HOME; `x`"],
    "echo a~b a#b": ["echo", "a~b", "a#b"],
    "npm run build:prod --if-present": ["npm", "run", "build:prod", "--if-present"],
    "echo grüße": ["echo", "grüße"],
}

SHELL = [
    "echo hi; id", "echo hi && id", "echo hi || id", "echo hi | id", "echo hi & id", "id &", "echo hi > f", "echo hi >> f",
    "cat < f", "cat << EOF", "cat <(id)", "echo >(id)", "echo $HOME", "echo ${x@P}", "echo $(id)", "echo `id`", 'echo "$(id)"',
    'echo "`id`"', "echo $((1+1))", "echo $[1]", "(id)", "{ id; }", "{rm,-rf,x}", "echo *", "echo a?b", "echo [ab]", "ls ~",
    "ls ~root", "ls --dir=~/x", "a=b", "A=1 id", "PATH=. id", "A+=1 id", "echo hi\nid", "echo hi\r\nid", "echo # x", "#x",
    "! id", "echo a^&calc", "echo $'a'", 'echo $"a"', r"r\m x", "echo \\", "echo a\u00a0b", "echo a\u2028b", "echo \x1b[2J",
    "echo \u202egnp", "echo\u200bx", "$a$b x", "echo hi\x00",
]  # fmt: skip


@pytest.mark.parametrize("text", PLAIN)
def test_a_plain_line_becomes_its_words(text: str) -> None:
    assert split(text) == PLAIN[text]


@pytest.mark.parametrize("text", SHELL)
def test_what_a_shell_would_interpret_is_refused(text: str) -> None:
    with pytest.raises(ShellNeeded):
        split(text)


@pytest.mark.parametrize(
    "text", ["echo 'open", 'echo "open', "", "   ", "''", "\uff52\uff4d -rf x", "x" * (MAX_TEXT + 1)]
)
def test_what_is_no_command_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        to_argv(text)


@pytest.mark.parametrize("argv", [[], [""], ["a\0b"], ["a", "b\0"], ["\ud800"], ["gi\u200bt"], ["git\n"], ["x"] * 5000])
def test_an_argv_that_hides_what_it_is_is_refused(argv: list[str]) -> None:
    with pytest.raises(InvalidRequest):
        to_argv(argv)


def test_an_argv_is_taken_byte_for_byte() -> None:
    argv = ["echo", "$(id)", "a\nb", " ; ", "*", "\u202e"]
    assert to_argv(argv) == argv


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="ab \t'\"\\-=:.,/@%+_~#é", min_size=1, max_size=30))
def test_a_shell_reads_an_accepted_line_the_same_way(text: str) -> None:
    try:
        words = split("printf %s\\\\0 x " + text)
    except InvalidRequest:
        return
    told = subprocess.run(
        ["/bin/sh", "-c", "printf '%s\\0' x " + text], capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"}
    )
    assert told.stdout.decode().split("\0")[:-1] == words[2:]


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=60))
def test_any_text_is_an_argv_or_a_refusal(text: str) -> None:
    try:
        words = to_argv(text)
    except InvalidRequest:
        return
    assert words and all("\0" not in word for word in words)

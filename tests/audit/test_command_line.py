"""The command line in the history: no secret, and still readable."""

import shlex
import time

import pytest

from computer_linker.audit.command_line import MAX_PREVIEW, command_preview
from fixtures.command_lines import HARMLESS, with_secrets

LINES = with_secrets()


def test_the_corpus_is_large_enough() -> None:
    assert len(LINES) >= 300 and len({line for line, _ in LINES}) == len(LINES)


@pytest.mark.parametrize(("line", "secret"), LINES, ids=range(len(LINES)))
def test_no_secret_is_left(line: str, secret: str) -> None:
    preview = command_preview(line)
    assert secret not in preview
    # Nor a part of it that would help: any six characters in a row that are its own.
    assert not any(secret[at : at + 6] in preview for at in range(len(secret) - 5)), preview


@pytest.mark.parametrize(("line", "secret"), LINES[::3], ids=range(len(LINES[::3])))
def test_no_secret_is_left_of_the_words(line: str, secret: str) -> None:
    try:
        words = shlex.split(line)
    except ValueError:
        return
    preview = command_preview(words)
    assert not any(secret[at : at + 6] in preview for at in range(len(secret) - 5)), preview


def test_harmless_words_stay_readable() -> None:
    kept = total = 0
    for line in HARMLESS:
        preview = command_preview(line)
        for word in line.split():
            total += 1
            kept += word in preview
    assert total > 350
    assert kept / total >= 0.95, f"{kept} of {total}"


@pytest.mark.parametrize("secret", ["hunter2", "P@ssw0rd!23", "Tr0ub4dor&3", "letmein2026", "qX7kPz", "TrOuBaDoUr"])
def test_an_odd_word_is_masked_whatever_the_program(secret: str) -> None:
    assert command_preview(f"some-tool unlock {secret} now") == "some-tool unlock [masked] now"
    assert secret not in command_preview(["some-tool", f"--unlock={secret}"])


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["bash", "-lc", "npm test && npm run lint"], "bash -lc 'npm test && npm run lint'"),
        (["python3", "-c", "user=input()"], "python3 -c 'user=input()'"),
        (["node", "-e", "open('plain')"], "node -e \"open('plain')\""),
        (
            ["python3", "-c", "import shutil; shutil.rmtree('/home/me'); print(\"done\")"],
            "python3 -c 'import shutil; shutil.rmtree('\"'\"'/home/me'\"'\"'); print(\"done\")'",
        ),
        (["python3", "-c", "open('a.txt','w').write('x')"], "python3 -c \"open('a.txt','w').write('x')\""),
        (
            ["python3", "-c", "a='plain'; api.login('me', 'swordfish')"],
            "python3 -c \"a='plain'; api.login([masked], [masked])\"",
        ),
        (["python3", "-c", "os.environ['TOKEN'] = 'swordfish'"], "python3 -c \"os.environ['TOKEN'] = [masked]\""),
        (["python3", "-c", "send('hunter2')"], "python3 -c [masked]"),
        (["bash", "-c", "mysql -pswordfish shop"], "bash -c 'mysql -p[masked] shop'"),
    ],
)
def test_inline_code_stays_but_for_what_may_be_a_secret(words: list[str], shown: str) -> None:
    assert command_preview(words) == shown


@pytest.mark.parametrize("part", ["'a' ", "a='", '"\\', "expect -c ", "sh -c ", "secret "])
def test_a_line_made_to_be_slow_is_not(part: str) -> None:
    began = time.process_time()
    command_preview("python " + part * 3000)
    assert time.process_time() - began < 1


def test_what_is_around_a_secret_stays() -> None:
    shown = [command_preview(line).split()[0] == line.split()[0] or "=" in line.split()[0] for line, _ in LINES]
    assert sum(shown) / len(shown) >= 0.95


def test_it_is_bounded() -> None:
    assert len(command_preview("echo " + "word " * 10_000)) <= MAX_PREVIEW

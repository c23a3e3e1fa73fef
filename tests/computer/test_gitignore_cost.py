"""A hostile .gitignore costs no more than a plain one."""

import time

import pytest

from computer_linker.computer.gitignore import is_ignored, parse_ignore


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*a*a*a*a*a*a*a*a*a*a*a*a*a*b\n!x", "a" * 250),
        ("**/a/**/a/**/a/**/a/**/b\n!x", "/".join(["a"] * 1000)),
        ("?*?*?*?*?*?*?*?*?*?*?*?*z\n!x", "y" * 250),
    ],
)
def test_a_pattern_made_to_be_slow_is_not(pattern: str, path: str) -> None:
    rules = (parse_ignore(pattern, ""),)
    started = time.process_time()
    assert not is_ignored(rules, path, is_folder=False)
    assert time.process_time() - started < 1

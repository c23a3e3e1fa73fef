"""Which names Windows takes for something else than a file of that name. These need no Windows."""

import pytest

from computer_linker.system.windows.names import is_program_name, program_names, refused_name, slashed


@pytest.mark.parametrize(
    "name",
    [
        "a.txt:evil.exe", "a::$DATA", ":x", "CON", "con", "nul.txt", "Aux.tar.gz", "COM1", "lpt9.log", "com¹", "CONIN$", "con .txt",
        "a.", "a ", "a. .", "a\x01b", "a<b", "a>b", 'a"b', "a|b", "a?b", "a*b", "a\\b",
    ],
)  # fmt: skip
def test_a_stream_device_or_alias_is_no_name(name: str) -> None:
    assert refused_name(name) is not None


@pytest.mark.parametrize(
    "name", ["a.txt", ".git", "console", "com", "com10", "nulls.txt", "ü€😀", "a b", "a~b", ".~cl-00"]
)
def test_a_plain_name_is_one(name: str) -> None:
    assert refused_name(name) is None


def test_only_a_real_program_is_one() -> None:
    assert program_names("python") == ("python.exe", "python.com")
    assert program_names("C:/x/rg.EXE") == ("C:/x/rg.EXE",)
    assert [is_program_name(name) for name in ("a.exe", "a.bat", "a.cmd", "a.ps1", "a")] == [
        True,
        False,
        False,
        False,
        False,
    ]


def test_backslashes_separate_names() -> None:
    assert (slashed("a\\b/c"), slashed(b"a\\b")) == ("a/b/c", b"a/b")

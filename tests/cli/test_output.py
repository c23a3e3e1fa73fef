"""How commands speak."""

import pytest

from computer_linker.cli.output import fail


def test_an_error_worded_elsewhere_does_not_move_the_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    fail("laptop says \x1b[2J\x9b1A\u202eno\nway", "Zoë's\thint\x07")
    assert capsys.readouterr().err == "error: laptop says \\x1b[2J\\x9b1A\\u202eno way\nhint: Zoë's hint\\x07\n"

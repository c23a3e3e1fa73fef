"""Known attacks through the MCP endpoint of one real service, each judged by what it changed and what it was told."""

from collections.abc import Iterator

import pytest

from attacks.case import Case, fight
from attacks.command_cases import COMMAND_CASES
from attacks.file_cases import FILE_CASES
from attacks.git_cases import GIT_CASES
from attacks.ground import Field, battlefield
from attacks.other_cases import OTHER_CASES

CASES = [*FILE_CASES, *GIT_CASES, *COMMAND_CASES, *OTHER_CASES]


@pytest.fixture(scope="module")
def field(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Field]:
    with battlefield(tmp_path_factory.mktemp("ground")) as found:
        yield found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_attack_fails(field: Field, case: Case) -> None:
    fight(field, case)
    assert field.service.process.poll() is None

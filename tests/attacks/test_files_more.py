"""More attacks on files, commands and artifacts through the MCP endpoint of one real service."""

from collections.abc import Iterator

import pytest

from attacks.case import Case, fight
from attacks.ground import Field, battlefield
from attacks.more_cases import MORE_CASES


@pytest.fixture(scope="module")
def field(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Field]:
    with battlefield(tmp_path_factory.mktemp("more")) as found:
        yield found


@pytest.mark.parametrize("case", MORE_CASES, ids=lambda case: case.id)
def test_the_attack_fails(field: Field, case: Case) -> None:
    fight(field, case)
    assert field.service.process.poll() is None

"""The owner's proof `cli` is given in one place: no other module makes an owner principal or asks for the proof by name."""

import ast
from pathlib import Path

import pytest

from computer_linker.approvals.approvals import PERSON
from computer_linker.model.principal import Principal

SOURCE = Path(__file__).parents[2] / "src" / "computer_linker"
ALLOWED = {"model/principal.py", "serve/owner_calls.py"}


def owner_proofs(code: str) -> list[str]:
    """The places in a module where `cli` stands as a proof, each with its line."""
    found: list[str] = []
    if '"cli"' not in code and "'cli'" not in code:
        return found
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in ("Principal", "Proven", "replace"):
            given = [*node.args, *(word.value for word in node.keywords if word.arg in ("proof", None))]
        elif isinstance(node, ast.Compare) and "proof" in ast.unparse(node):
            given = [part for side in (node.left, *node.comparators) for part in ast.walk(side)]  # type: ignore[misc]
        else:
            continue
        if any(isinstance(value, ast.Constant) and value.value == "cli" for value in given):
            found.append(f"{node.lineno}: {ast.unparse(node)}")
    return found


def test_the_owners_proof_is_given_in_one_module() -> None:
    found = {
        path.relative_to(SOURCE).as_posix(): owner_proofs(path.read_text()) for path in sorted(SOURCE.rglob("*.py"))
    }
    assert {name: proofs for name, proofs in found.items() if proofs and name not in ALLOWED} == {}


@pytest.mark.parametrize(
    "code",
    ['Principal(name, "cli", "s", "c")', 'principal.Principal(id=name, proof="cli")', 'who.proof in ("cli", "oauth")'],
)
def test_the_rule_sees(code: str) -> None:
    assert owner_proofs(code)


def test_the_rule_passes_the_module_that_may() -> None:
    assert len(owner_proofs((SOURCE / "serve" / "owner_calls.py").read_text())) == 1


def test_an_approver_is_no_owner() -> None:
    for who in (PERSON, Principal("page:192.0.2.1", "approver", "phone", "phone")):
        assert not who.is_owner and not who.owns("local:a")

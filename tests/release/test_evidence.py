"""The evidence for a release: it holds for one commit, and takes no secrets (001-003, 001-004)."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from support import release_check
from support.release_evidence import CHECKS, Refused, file_in, main, problems, record, record_run

ROOT = Path(__file__).parents[2]
JUNIT = '<testsuites><testsuite tests="5" failures="{failures}" errors="0" skipped="1"/></testsuites>'


def git(root: Path, *words: str) -> None:
    command = ["git", "-C", str(root), "-c", "user.name=t", "-c", "user.email=t@example.com", *words]
    subprocess.run(command, check=True, capture_output=True, timeout=30)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "one")
    return tmp_path


def ran(project: Path, failures: int = 0) -> None:
    junit = project / "junit.xml"
    junit.write_text(JUNIT.format(failures=failures))
    record_run(project, junit)


def test_a_run_and_every_check_by_hand_are_enough(project: Path) -> None:
    assert problems(project, by_hand=False) == ["no run of the tests is on record: make test-all"]
    ran(project)
    assert problems(project, by_hand=False) == []
    assert len(problems(project, by_hand=True)) == len(CHECKS)
    for check in CHECKS:
        record(project, check, "seen in Example Client 1.2 over https://linker.example.com/mcp")
    assert problems(project, by_hand=True) == []


def test_a_failed_run_another_commit_and_old_evidence_do_not_count(project: Path) -> None:
    ran(project, failures=2)
    assert problems(project, by_hand=False) == ["2 of 5 tests failed in the last run"]
    ran(project)
    git(project, "commit", "-q", "--allow-empty", "-m", "two")
    assert "not of this one" in problems(project, by_hand=False)[0]
    ran(project)
    kept = json.loads(file_in(project).read_text())
    kept["run"]["at"] = "2020-01-01T00:00:00+00:00"
    file_in(project).write_text(json.dumps(kept))
    assert "older than" in problems(project, by_hand=False)[0]


@pytest.mark.parametrize(
    "note",
    [
        "header Authorization: Bearer abcdefghijklmnop",
        "with sk-test-0123456789abcdef",
        "https://me:hunter22@linker.example.com/mcp",
        "ownerToken=abcdefgh1234",
        "token: q8Zr2-_x",
        "-----BEGIN OPENSSH PRIVATE KEY-----",
        "eyJhbGciOiJIUzI1NiJ9.e30.x",
        "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    ],
)
def test_a_note_with_a_secret_is_refused_and_not_written(project: Path, note: str) -> None:
    record(project, "client", "Example Client 1.2")
    before = file_in(project).read_bytes()
    with pytest.raises(Refused, match="secret"):
        record(project, "exposure", note)
    assert file_in(project).read_bytes() == before
    # One that was put into the file by hand is found.
    kept = json.loads(before)
    kept["checks"]["exposure"] = {**kept["checks"]["client"], "note": note}
    file_in(project).write_text(json.dumps(kept))
    assert problems(project, by_hand=True) == ["the evidence has a value that looks like a secret"]


@pytest.mark.parametrize(("check", "note"), [("luck", "all fine"), ("client", ""), ("client", "x" * 400)])
def test_what_is_no_check_or_no_note_is_refused(project: Path, check: str, note: str) -> None:
    with pytest.raises(Refused):
        record(project, check, note)
    assert not file_in(project).exists()


def test_the_command_without_words_names_the_checks(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert all(check in capsys.readouterr().out for check in ["client"])


def test_the_checklist_finds_versions_that_differ_and_an_undated_changelog(tmp_path: Path) -> None:
    root = tmp_path / "project"
    (root / "src/computer_linker").mkdir(parents=True)
    for name in ("pyproject.toml", "LICENSE", "README.md", "CHANGELOG.md", "SECURITY.md"):
        shutil.copy(ROOT / name, root / name)
    (root / "src/computer_linker/__init__.py").write_text('"""One file."""\n\n__version__ = "9.9.9"\n')
    (root / "src/computer_linker/__main__.py").write_text('"""The program."""\n')
    git(tmp_path, "init", "-q", str(root))
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "one")
    wheel, sdist = release_check.build(root, tmp_path / "dist")
    found = release_check.problems(root, wheel, sdist, is_draft=False, by_hand=False)
    assert any("states version 9.9.9" in problem for problem in found)
    assert any("does not date version" in problem for problem in found)
    assert any("no run of the tests" in problem for problem in found)
    assert not any("lacks" in problem for problem in found)
    (root / "src/computer_linker/extra.sql").write_text("select 1;\n")
    found = release_check.problems(root, wheel, sdist, is_draft=True, by_hand=False)
    assert "the wheel lacks src/computer_linker/extra.sql" in found

"""The rules of the house that a machine can check."""

import ast
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "computer_linker"
FILES = sorted(SOURCE.rglob("*.py"))
TEST_FILES = sorted((ROOT / "tests").rglob("*.py"))
MAX_LINES, MAX_TEST_LINES, MAX_FUNCTION = 400, 600, 60


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def lines_of(path: Path) -> int:
    return len(path.read_text().splitlines())


def test_a_file_is_one_idea_that_says_which() -> None:
    # A docstring is the first token; to parse every file takes seconds.
    assert [named(path) for path in FILES if not path.read_text().startswith('"""')] == []
    assert [f"{named(path)} ({lines_of(path)} lines)" for path in FILES if lines_of(path) > MAX_LINES] == []


def test_a_function_is_one_thought() -> None:
    long = [
        f"{named(path)}: {node.name} ({node.end_lineno - node.lineno + 1} lines)"
        for path in FILES
        if lines_of(path) > MAX_FUNCTION
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno + 1 > MAX_FUNCTION
    ]
    assert long == []


def test_a_test_file_can_be_read_in_one_sitting() -> None:
    assert [f"{named(path)} ({lines_of(path)} lines)" for path in TEST_FILES if lines_of(path) > MAX_TEST_LINES] == []


def test_a_skip_says_itself_what_is_missing() -> None:
    """A sentence of whatever failed may name anything, or nothing."""
    passed_on = [named(path) for path in TEST_FILES if "skip(" + "str(" in path.read_text()]
    assert passed_on == []


def test_the_platform_is_asked_only_where_it_may_be() -> None:
    allowed = (SOURCE / "computer" / "local", SOURCE / "service" / "install", SOURCE / "system")
    askers = [
        named(path)
        for path in FILES
        if "sys.platform" in path.read_text() and not any(path.is_relative_to(folder) for folder in allowed)
    ]
    assert askers == []


def test_imports_go_one_way() -> None:
    checker = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([checker, "--no-cache"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_only_the_mcp_package_and_its_users_know_the_sdk() -> None:
    allowed = (SOURCE / "transports", SOURCE / "auth" / "oauth")
    users = [
        named(path)
        for path in FILES
        if any(line.strip().startswith(("import mcp", "from mcp")) for line in path.read_text().splitlines())
        and not any(path.is_relative_to(folder) for folder in allowed)
    ]
    assert users == []


def test_the_stdio_shim_imports_nothing_heavy() -> None:
    code = "import sys, computer_linker.transports.stdio; print(' '.join(sorted(sys.modules)))"
    # Without the environment of whoever measures coverage, which would import its own.
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True, env={})
    loaded = done.stdout.split()
    assert not {"asyncio", "pydantic", "socket", "json", "typing", "re", "anyio", "subprocess"} & set(loaded)


def test_no_file_names_this_machine() -> None:
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    forbidden = ["/" + "work" + "/", "/" + "farm" + "/"]
    named_here = [
        name
        for name in tracked.split("\0")
        if name
        and (ROOT / name).is_file()
        and any(word in (ROOT / name).read_text("utf-8", "replace") for word in forbidden)
    ]
    assert named_here == []

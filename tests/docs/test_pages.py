"""The pages say what is so: links lead somewhere, commands exist, requests fit, the tutorial runs."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # it ships no types

from computer_linker import __version__
from computer_linker.cli.app import build
from computer_linker.cli.reference import page as page_of_commands
from computer_linker.registry.reference import whole_catalog
from computer_linker.registry.schema import request_schema
from support.service import end_service, environment, write_config

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
BY_HAND = [page for page in PAGES if "reference" not in page.parts]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)#\s]+)(#[^)]*)?\)")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path, language: str) -> list[str]:
    return [text for kind, text in _BLOCK.findall(page.read_text()) if kind == language]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target, _ in _LINK.findall(page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def command_lines() -> Iterator[tuple[Path, str]]:
    for page in PAGES:
        for block in blocks(page, "sh"):
            # A page that is written has one command a line; a generated one has one a block, over several lines.
            for line in block.splitlines() if page in BY_HAND else [block]:
                if re.search(r"(^|\s)computer-linker ", line):
                    yield page, line
        if page in BY_HAND and "decisions" not in page.parts and page.name != "CHANGELOG.md":
            # Commands inside sentences; those with an ellipsis are parts of one, and a page adds `scope rename`.
            for line in re.findall(r"`(computer-linker [a-z][^`]*)`", page.read_text()):
                if "..." not in line and "…" not in line and "scope rename" not in line:
                    yield page, " ".join(line.split())


def test_every_command_on_a_page_exists_with_its_options() -> None:
    import typer

    program = typer.main.get_command(build(everything=True))
    seen = 0
    for page, line in command_lines():
        words = shlex.split(line, comments=True)
        words = words[words.index("computer-linker") + 1 :]
        words = words[: next((at for at, word in enumerate(words) if word in ("<", ">", "&&", ">>")), len(words))]
        if words == ["--help-all"]:
            continue
        command, path = program, ["computer-linker"]
        while hasattr(command, "commands"):
            if not words or (getattr(command, "invoke_without_command", False) and words[0].startswith("-")):
                break
            assert words and words[0] in command.commands, f"{name_of(page)}: {line}"
            path.append(words[0])
            command, words = command.commands[words[0]], words[1:]
        if not hasattr(command, "commands"):
            # A name alone stands for the command, whatever it needs.
            command.make_context(" ".join(path), words, resilient_parsing=not words)
        seen += 1
    assert seen > 40


def test_every_json_block_on_a_page_is_json_and_every_request_fits() -> None:
    branches = {
        branch["title"]: Draft202012Validator(branch)
        for branch in request_schema(whole_catalog().operations.values())["oneOf"]
    }
    for page in PAGES:
        for block in blocks(page, "json"):
            if block.startswith('{"ok": ') and page not in BY_HAND:
                # A measured answer; the reference cuts a long one.
                continue
            value = json.loads(block)
            if isinstance(value, dict) and "op" in value and "ok" not in value:
                request = {name: item for name, item in value.items() if name != "action"}
                assert branches[request["op"]].is_valid(request), f"{name_of(page)}: {block}"


def test_the_page_of_commands_is_as_the_commands_say() -> None:
    assert (ROOT / "docs" / "reference" / "cli.md").read_text() == page_of_commands(), "run: make docs"


def fits(wanted: str, shown: str) -> bool:
    """Whether the output is as the page shows it; `...` stands for anything, and columns may be wider."""
    pieces = [re.escape(piece) for piece in re.sub(r"[ ]+", " ", wanted.strip()).split("...")]
    return re.fullmatch(r"[\s\S]*".join(pieces), re.sub(r"[ ]+", " ", shown.strip())) is not None


@pytest.mark.parametrize(
    "page",
    [
        *ROOT.glob("docs/how-to/*.md"),
        *ROOT.glob("docs/explanation/*.md"),
        *ROOT.glob("docs/tutorial/*.md"),
        ROOT / "docs" / "reference" / "glossary.md",
    ],
    ids=name_of,
)
def test_every_page_is_linked_from_the_first_one(page: Path) -> None:
    first = ROOT / "docs" / "README.md"
    assert page in {(first.parent / target).resolve() for target, _ in _LINK.findall(first.read_text())}


def test_the_tutorial_runs_as_it_is_written(tmp_path: Path) -> None:
    assert run_as_written(ROOT / "docs" / "tutorial" / "first-folder.md", tmp_path) == 11


def test_stopping_everything_runs_as_it_is_written(tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    subprocess.run(
        [sys.executable, "-m", "computer_linker", "setup", str(tmp_path / "app")],
        env=environment(tmp_path / "state"), capture_output=True, timeout=240, check=True,
    )  # fmt: skip
    assert run_as_written(ROOT / "docs" / "how-to" / "stop-everything.md", tmp_path) == 6


def test_what_did_my_agent_do_runs_as_it_is_written(tmp_path: Path) -> None:
    assert run_as_written(ROOT / "docs" / "how-to" / "what-did-my-agent-do.md", tmp_path) == 18


def run_as_written(page: Path, tmp_path: Path) -> int:
    """Run each command of a page and compare what it shows; how many there were."""
    home = tmp_path / "state"
    env = {
        **os.environ,
        "COMPUTER_LINKER_HOME": str(home),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    (tmp_path / "work").mkdir()
    steps = 0
    try:
        for block in blocks(page, "console"):
            for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                command, _, wanted = step.partition("\n")
                if command.startswith("export "):
                    name, _, value = command.removeprefix("export ").partition("=")
                    env[name] = value.replace("$PWD", str(tmp_path / "work"))
                    home, steps = Path(env["COMPUTER_LINKER_HOME"]), steps + 1
                    continue
                done = subprocess.run(
                    ["sh", "-c", command], cwd=tmp_path / "work", env=env, capture_output=True, text=True, timeout=240,
                    check=False,
                )  # fmt: skip
                shown = done.stdout + done.stderr
                assert fits(wanted, shown), f"$ {command}\n{shown}\nwanted:\n{wanted}"
                steps += 1
    finally:
        end_service(home)
    return steps


def test_the_owners_command_on_the_page_can_be_added_as_it_is_written(tmp_path: Path) -> None:
    """One file in a copy of the package: in the help, done, in the history, undone, in the reference."""
    (code,) = blocks(ROOT / "docs" / "how-to" / "add-an-owners-command.md", "python")
    home = tmp_path / "home"
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    folder = tmp_path / "src" / "computer_linker" / "owner" / "scope"
    folder.mkdir(exist_ok=True)
    (folder / "__init__.py").touch()
    (folder / "rename.py").write_text(code)
    write_config(home, tmp_path / "root")
    before = (home / "config.json").read_bytes()

    def run(*words: str) -> str:
        env = {**environment(home), "PYTHONPATH": str(tmp_path / "src")}
        done = subprocess.run(
            [sys.executable, *words], env=env, capture_output=True, text=True, timeout=240, check=True
        )
        return done.stdout

    command = ("-m", "computer_linker")
    assert "Give a scope another name for people; its id stays." in run(*command, "scope", "--help")
    assert run(*command, "scope", "rename", "app", "My app") == "Scope app is now called My app.\n"
    assert json.loads((home / "config.json").read_text())["scopes"][0]["name"] == "My app"
    (event,) = json.loads(run(*command, "history", "--json", "--query", "op:scope.rename"))["events"]
    assert (event["effect"], event["outcome"]) == ("confirmed", "done") and event["principal"].startswith("cli:")
    run(*command, "undo", event["operationId"])
    assert json.loads((home / "config.json").read_bytes()) == json.loads(before)
    page = run("-c", "from computer_linker.cli.reference import page; print(page())")
    assert "## scope rename" in page and "computer-linker scope rename [OPTIONS] SCOPE NAME" in page


def test_the_changelog_and_the_package_agree_on_the_version() -> None:
    newest = re.search(r"^## (\d+\.\d+\.\d+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    assert newest.group(1) == __version__
    assert f'version = "{__version__}"' in (ROOT / "pyproject.toml").read_text()


@pytest.mark.parametrize("page", BY_HAND, ids=name_of)
def test_a_page_speaks_of_the_project_alone(page: Path) -> None:
    text = page.read_text()
    assert not re.search(r"(?<![\w.])/(work|root|tmp)/", text)

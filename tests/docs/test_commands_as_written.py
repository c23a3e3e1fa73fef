"""Every command on README and the how-to pages is run as it is written, by a person with an empty home and the program on the PATH.

What cannot be run here is listed with its reason, so that no command is left out unnoticed.
"""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from support.service import end_service

ROOT = Path(__file__).parents[2]
HOW_TO = ROOT / "docs" / "how-to"
_BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
_PROCESS = re.compile(r"proc_[0-9a-f]{8,}")
DEADLINE_S = 120

OTHERS = {
    "watch-what-happens.md": "a full-screen program; tests/watch runs it in tmux",
    "expose-with-a-tunnel.md": "providers' own programs and accounts; tests/tunnels has stand-ins",
    "run-as-a-service.md": "the user's service manager; tests/service/install has one of its own",
    "use-another-computer.md": "a second computer; tests/peer has pairs",
    "install-upgrade-uninstall.md": "it installs packages; test_installing.py follows it",
    "use-on-macos.md": "a Mac; tests/macos has a stand-in, and test_installing.py installs the same way",
    "add-an-operation.md": "it runs these tests; test_adding_an_operation.py follows it",
}
"""Pages whose commands need what is not here, and what tests them instead."""


@dataclass
class Page:
    """What a page takes for granted, which commands go on serving, and which are refused on a machine like this one."""

    before: str = "computer-linker setup ~/project && computer-linker config set port 0"
    with_service: bool = False
    """Whether the page takes for granted that `computer-linker start` runs."""
    serves: tuple[str, ...] = ()
    refused: dict[str, str] = field(default_factory=dict)
    """Commands that end with an error here, and a part of it."""
    not_run: dict[str, str] = field(default_factory=dict)
    """Commands that are not run, and why."""


NO_PUBLIC = {"--public": "public address"}
CLIENT = Page(serves=("computer-linker start",), not_run={"opencode mcp auth": "opencode's own program"})
APP = "mkdir ~/app && computer-linker setup ~/app && computer-linker config set port 0"
PAGES = {
    "README.md": Page(
        before="computer-linker setup && computer-linker config set port 0 && mkdir ~/my-project",
        serves=("make start ",),
        not_run={"make install": "it installs packages; test_installing.py does"},
    ),
    "docs/how-to/allow-commands.md": Page(
        refused={"op package.run": "package", "command=npm test": "npm"}, not_run={"--follow": "it follows until Ctrl-C"}
    ),
    "docs/how-to/use-some-hosts.md": Page(),
    "docs/how-to/use-a-secret.md": Page(
        before="computer-linker setup ~/project && computer-linker config set port 0 && echo tok_0123456789abcdefXYZ > token.txt"
        " && mkdir -p ~/.ssh && ssh-keygen -q -t ed25519 -N '' -f host && (printf 'git.example.org '; cat host.pub) > ~/.ssh/known_hosts",
        not_run={"curl -H": "a host of the internet; tests/attacks has its own", "allow-secret screen": "it needs a scope of a desktop"},
    ),
    "docs/how-to/approve-requests.md": Page(
        before=APP,
        refused={
            "revoke ID": "no standing approval", "close ID": "no opened page", "unpush ID": "no address", "--token-file": "FILE",
            "push https": "did not take a first message",
        },
    ),
    "docs/how-to/take-a-change-back.md": Page(before=APP, refused={"show ID": "no operation 'ID'", "undo ID": "nothing kept"}),
    "docs/how-to/prove-what-was-done.md": Page(
        before="computer-linker init && computer-linker config set port 0 && echo x > report.txt && computer-linker scope add ~ --id app",
        refused={"proof capture": "scope"},
    ),
    "docs/how-to/use-a-browser.md": Page(before=APP, not_run={"op browser.open": "tests/operations/browser opens pages"}),
    "docs/how-to/use-language-servers.md": Page(
        before=f"{APP} && mkdir ~/app/src && cd ~/app/src && echo 'def greet(): pass' > greet.py && "
        "printf 'from greet import greet\\n\\n\\n\\ngreet()\\n' > main.py"
    ),
    "docs/how-to/connect-a-client.md": Page(serves=("computer-linker start",), refused=NO_PUBLIC),
    "docs/how-to/decide-after-a-command-ran.md": Page(
        before="mkdir ~/app && computer-linker setup ~/app --shell", not_run=dict.fromkeys(("op view.show", "op view.keep"), "the id of a view that is there")
    ),
    "docs/how-to/find-what-blocks-a-client.md": Page(with_service=True, refused=NO_PUBLIC),
    "docs/how-to/narrow-a-scope.md": Page(),
    "docs/how-to/repair-a-config.md": Page(),
    "docs/how-to/run-codex.md": Page(
        before="computer-linker init && computer-linker config set port 0 && mkdir -p ~/projects/app",
        refused={"op codex.run": "odex"},
    ),
    "docs/how-to/stop-everything.md": Page(),
    "docs/how-to/use-an-older-client.md": Page(serves=("COMPUTER_LINKER_MCP_TOOL_SURFACE=compatibility computer-linker start",)),
    "docs/how-to/use-from-scripts.md": Page(
        with_service=True,
        before="mkdir ~/app && computer-linker setup ~/app && computer-linker config set port 0 && echo TODO > notes.txt"
    ),
    "docs/how-to/clients/chatgpt.md": Page(with_service=True, refused={**NO_PUBLIC, "tunnel start cloudflare": "cloudflared"}),
    **{
        f"docs/how-to/clients/{name}.md": CLIENT
        for name in ("claude-code", "claude-desktop", "codex", "cursor", "gemini-cli", "opencode", "vs-code")
    },
}  # fmt: skip


def commands(page: Path) -> list[str]:
    """The lines of a page's blocks; a block that sets a variable is one command."""
    found: list[str] = []
    for block in _BLOCK.findall(page.read_text()):
        lines = [line for line in block.splitlines() if line.strip()]
        found += ["\n".join(lines)] if re.match(r"[A-Z]+=\"", block) else lines
    return found


def test_no_page_with_commands_is_left_out() -> None:
    """Found: blocks that are only indented were run by no test."""
    pages = (ROOT / "README.md", *HOW_TO.rglob("*.md"))
    assert [str(page) for page in pages if re.search(r"^ {4,}computer-linker ", page.read_text(), re.MULTILINE)] == []
    there = {str(page.relative_to(ROOT)) for page in (ROOT / "README.md", *HOW_TO.rglob("*.md")) if commands(page)}
    assert there - PAGES.keys() == {f"docs/how-to/{name}" for name in OTHERS if commands(HOW_TO / name)}


@dataclass
class Person:
    """A person at a shell with an empty home, and the program on the PATH as the pages have it."""

    home: Path
    process: str = "PROCESS"
    serving: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("COMPUTER_LINKER", "XDG_"))}
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        return {**kept, "HOME": str(self.home), "PATH": path}

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            ["sh", "-c", command.replace("PROCESS", self.process)], cwd=self.home, env=self.environment,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=DEADLINE_S, check=False,
        )  # fmt: skip
        found = _PROCESS.search(done.stdout)
        if found is not None:
            self.process = found.group()
        return done

    def serve(self, command: str) -> None:
        """Run what goes on serving, until it says where."""
        process = subprocess.Popen(
            ["sh", "-c", f"exec env {command}"], cwd=self.home, env=self.environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )  # fmt: skip
        self.serving.append(process)
        assert process.stdout is not None
        said = ""
        for line in process.stdout:
            said += line
            if "Ctrl-C stops" in line:
                return
        raise AssertionError(f"$ {command}\n{said}")


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Person]:
    made = Person(tmp_path / "home")
    (made.home / "project" / "vendor").mkdir(parents=True)
    (made.home / "project" / "drafts").mkdir()
    for name in ("notes", "elsewhere"):
        (made.home / name).mkdir()
    yield made
    for process in made.serving:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
        process.communicate(timeout=DEADLINE_S)
    for state in (made.home / ".computer-linker", made.home / "other-linker"):
        end_service(state)


@pytest.mark.parametrize("name", PAGES)
def test_the_commands_of_a_page_run_as_they_are_written(name: str, person: Person) -> None:
    page = PAGES[name]
    ready = person.run(page.before)
    assert ready.returncode == 0, ready.stderr
    if page.with_service:
        person.serve("computer-linker start")
    for command in commands(ROOT / name):
        if any(part in command for part in page.not_run):
            continue
        # Only the checkout has the Makefile, and these tests run from its environment.
        line = command.replace("make start", f"make -s -C '{ROOT}' -o .venv/.base start")
        if any(command.startswith(start) for start in page.serves) and not person.serving:
            person.serve(line.partition("#")[0])
            continue
        done = person.run(line)
        expected = next((text for part, text in page.refused.items() if part in command), None)
        if expected is None or done.returncode == 0:
            assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr}"
        else:
            assert expected in done.stdout + done.stderr, f"$ {command}\n{done.stdout}{done.stderr}"
            assert "Traceback" not in done.stderr

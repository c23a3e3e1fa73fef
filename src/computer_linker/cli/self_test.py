"""self-test: the whole loop of the installed program, in a folder and a state of its own that vanish afterwards."""

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from computer_linker.cli.output import note, print_json, table
from computer_linker.client.socket_client import ask_service
from computer_linker.client.stdio_client import ClientFailed, StdioClient
from computer_linker.config.schema import Config
from computer_linker.errors import LinkError

_TOOLS = {"get_computer_info", "computer_operation", "get_operation_history"}
_COMMAND = [sys.executable, "-I", "-m", "computer_linker", "stdio"]


@dataclass
class Steps:
    """The steps and their results."""

    done: list[dict[str, Any]] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return all(step["ok"] for step in self.done)

    def check(self, name: str, holds: Callable[[], bool]) -> None:
        """Run one step and record its result."""
        try:
            ok, reason = holds(), ""
        except (ClientFailed, LinkError, OSError, KeyError, IndexError, ValueError) as error:
            ok, reason = False, str(error) or type(error).__name__
        self.done.append({"step": name, "ok": ok, "reason": reason})


def register(app: typer.Typer) -> None:
    """Add `self-test`."""

    @app.command("self-test")
    def self_test(as_json: Annotated[bool, typer.Option("--json", help="Answer as JSON.")] = False) -> None:
        """Try the whole loop with a temporary config and folder; ends non-zero when something does not work."""
        answer_with(run(), as_json=as_json)


def answer_with(steps: Steps, *, as_json: bool) -> None:
    """Print the steps and exit with the code for scripts."""
    if as_json:
        print_json({"ok": steps.passed, "steps": steps.done})
    else:
        table([("ok" if step["ok"] else "error", step["step"], step["reason"]) for step in steps.done])
        note("All steps passed." if steps.passed else "Something does not work: computer-linker doctor")
    raise typer.Exit(0 if steps.passed else 1)


def run() -> Steps:
    """Set up in a temporary folder, then read, write, be refused, and find it all in the history."""
    from computer_linker.service.setup import SetupChoices, set_up

    with tempfile.TemporaryDirectory(prefix="computer-linker-self-test-") as place:
        home, root = Path(place) / "state", Path(place) / "folder"
        root.mkdir()
        (root / "hello.txt").write_text("hello\n")
        (Path(place) / "outside.txt").write_text("outside\n")
        set_up(home, SetupChoices(root, scope_id="test"))
        with _service_ended(home):
            return _loop(home, root)


def smoke(home: Path, config: Config) -> Steps:
    """Connect to the real configuration as a client does, reading only."""
    steps = Steps()
    try:
        with StdioClient(_COMMAND, home) as client:
            _greet(steps, client)
            for scope in config.scopes:
                if scope.type == "folder" and "fs:read" in scope.capabilities:
                    call = {"scope": scope.id, "op": "file.list", "target": ".", "options": {"maxResults": 1}}
                    steps.check(f"file.list in {scope.id}", lambda call=call: answered(_operation(client, call))["ok"])  # type: ignore[misc]
    except OSError as error:
        steps.check(f"start the program: {error}", lambda: False)
    return steps


def _loop(home: Path, root: Path) -> Steps:
    steps = Steps()
    with StdioClient(_COMMAND, home) as client:
        _greet(steps, client)
        if not steps.passed:
            return steps
        read = {"op": "file.read", "target": "hello.txt"}
        steps.check("file.read", lambda: _operation(client, read)["data"]["content"] == "hello\n")
        write = {"op": "file.write", "target": "made.txt", "input": {"content": "made\n"}}
        steps.check("file.write", lambda: _operation(client, write)["effect"] == "confirmed")
        steps.check("the file is on disk", lambda: (root / "made.txt").read_text() == "made\n")
        out = {"op": "file.read", "target": "../outside.txt"}
        steps.check(
            "a path outside is refused", lambda: _operation(client, out)["error"]["code"] == "path_out_of_scope"
        )
        run = {"op": "command.run", "target": ".", "input": {"command": ["touch", "ran.txt"]}}
        steps.check("a command is refused", lambda: _operation(client, run)["error"]["code"] == "permission_denied")
        steps.check("and did not run", lambda: not (root / "ran.txt").exists())
        steps.check("the history has it all", lambda: _remembered(client))
    return steps


def _greet(steps: Steps, client: StdioClient) -> None:
    steps.check("initialize", lambda: bool(client.initialize()["serverInfo"]["name"]))
    steps.check("tools/list", lambda: {tool["name"] for tool in client.request("tools/list")["tools"]} >= _TOOLS)
    steps.check("get_computer_info", lambda: bool(answered(client.tool("get_computer_info", {}))["machineId"]))


def answered(envelope: dict[str, Any]) -> dict[str, Any]:
    """The envelope of a call that was not refused; the reason of a refusal is raised as ClientFailed."""
    if envelope.get("ok") is False:
        raise ClientFailed(envelope["error"]["message"])
    return envelope


def _operation(client: StdioClient, call: dict[str, Any]) -> dict[str, Any]:
    return client.tool("computer_operation", {"scope": "test", **call})


def _remembered(client: StdioClient) -> bool:
    events = client.tool("get_operation_history", {"view": "timeline", "scope": "test"})["events"]
    return {"file.read", "file.write", "command.run"} <= {event["op"] for event in events}


@contextmanager
def _service_ended(home: Path) -> Iterator[None]:
    """End the on-demand service the client started, so that no process uses a folder that is about to be removed."""
    try:
        yield
    finally:
        if ask_service(home, {"owner": "stop", "input": {}}, is_question=True) is not None:
            _wait_until_gone(home)


def _wait_until_gone(home: Path) -> None:
    """Wait for the service's end by waiting for its lock."""
    import time

    from computer_linker.home import take_lock

    until = time.monotonic() + 20
    while time.monotonic() < until and take_lock(str(home)) is None:
        time.sleep(0.02)

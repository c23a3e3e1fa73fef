"""self-test: the whole loop of the installed program, in a folder and a state of its own that vanish afterwards."""

import os
import subprocess
import sys
import tempfile
import threading
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
from computer_linker.model.base import Model

_SERVE_S = 60.0
_TOOLS = {"get_computer_info", "computer_operation", "get_operation_history"}
_COMMAND = [sys.executable, "-I", "-m", "computer_linker", "stdio"]


class Step(Model):
    """One step: whether it worked, and why not, or what was found."""

    step: str
    ok: bool
    reason: str = ""


class SelfTest(Model):
    """The result of `self-test` and `client smoke`."""

    ok: bool
    steps: list[Step]


@dataclass
class Steps:
    """The steps and their results."""

    done: list[Step] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return all(step.ok for step in self.done)

    def check(self, name: str, holds: Callable[[], bool]) -> None:
        """Run one step and record its result."""
        try:
            ok, reason = holds(), ""
        except (ClientFailed, LinkError, OSError, KeyError, IndexError, ValueError) as error:
            ok, reason = False, str(error) or type(error).__name__
        self.done.append(Step(step=name, ok=ok, reason=reason))


def register(app: typer.Typer) -> None:
    """Add `self-test`."""

    @app.command("self-test")
    def self_test(as_json: Annotated[bool, typer.Option("--json", help="Answer as JSON.")] = False) -> None:
        """Try the whole loop in a temporary folder, over stdio and HTTP; ends non-zero when something does not work."""
        answer_with(run(), as_json=as_json)


def answer_with(steps: Steps, *, as_json: bool) -> None:
    """Print the steps and exit with the code for scripts."""
    if as_json:
        print_json(SelfTest(ok=steps.passed, steps=steps.done).to_wire())
    else:
        table([("ok" if step.ok else "error", step.step, step.reason) for step in steps.done])
        note("All steps passed." if steps.passed else "Something does not work: computer-linker doctor")
    raise typer.Exit(0 if steps.passed else 1)


def run() -> Steps:
    """Set up in a temporary folder, read, write, be refused, find it all in the history; then HTTP and the screen."""
    from computer_linker.service.setup import SetupChoices, set_up

    # On Windows a program that the desktop started meanwhile can hold the service's log; only that file is left then.
    with tempfile.TemporaryDirectory(prefix="computer-linker-self-test-", ignore_cleanup_errors=True) as place:
        home, root = Path(place) / "state", Path(place) / "folder"
        root.mkdir()
        (root / "hello.txt").write_bytes(b"hello\n")
        (Path(place) / "outside.txt").write_text("outside\n")
        config = set_up(home, SetupChoices(root, scope_id="test")).config
        with _service_ended(home):
            steps = _loop(home, root)
            if steps.passed:
                _over_http(steps, home, config)
                _screen(steps)
            return steps


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
        steps.check("the file is on disk", lambda: (root / "made.txt").read_bytes() == b"made\n")
        out = {"op": "file.read", "target": "../outside.txt"}
        steps.check(
            "a path outside is refused", lambda: _operation(client, out)["error"]["code"] == "path_out_of_scope"
        )
        run = {"op": "command.run", "target": ".", "input": {"command": ["touch", "ran.txt"]}}
        steps.check("a command is refused", lambda: _operation(client, run)["error"]["code"] == "permission_denied")
        steps.check("and did not run", lambda: not (root / "ran.txt").exists())
        steps.check("the history has it all", lambda: _remembered(client))
    return steps


def _over_http(steps: Steps, home: Path, config: Config) -> None:
    """Serve on a free loopback port, and use it as an HTTP client does."""
    from computer_linker.cli.smoke_http import smoke_http

    command = [*_COMMAND[:-1], "serve", "--port", "0"]
    env = {**os.environ, "COMPUTER_LINKER_HOME": str(home)}
    with subprocess.Popen(command, env=env, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True) as service:
        late = threading.Timer(_SERVE_S, service.kill)
        late.start()
        try:
            assert service.stderr is not None, "it was asked for"
            url = next((line.split()[1] for line in service.stderr if line.startswith("serving ")), None)
            steps.check("serve", lambda: url is not None)
            if url is not None:
                found = smoke_http(url, config, is_public=False)
                steps.done += [one.model_copy(update={"step": f"http: {one.step}"}) for one in found.done]
        finally:
            service.terminate()
            service.communicate()
            late.cancel()


def _screen(steps: Steps) -> None:
    """Ask for the screen's displays and the system's permission. No pixels are captured; a machine may have no screen."""
    import anyio

    from computer_linker.computer.local.probe import this_computer
    from computer_linker.service.screenshots import Screenshots, screenshot_readiness

    async def look() -> Screenshots:
        computer = this_computer()
        try:
            return await screenshot_readiness(computer)
        finally:
            await computer.aclose()

    found = anyio.run(look)
    reason = found.permission.detail or found.remedy or ""
    ok = found.permission.status != "unknown"
    steps.done.append(Step(step=f"screen (no pixels): {found.permission.status}", ok=ok, reason=reason))


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
        # One that does not answer any more may still be ending.
        ask_service(home, {"owner": "stop", "input": {}}, is_question=True)
        _wait_until_gone(home)


def _wait_until_gone(home: Path) -> None:
    """Wait for the service's end by waiting for its lock."""
    import time

    from computer_linker.home import take_lock

    until = time.monotonic() + 20
    while (lock := take_lock(str(home))) is None and time.monotonic() < until:
        time.sleep(0.02)
    if lock is not None:
        os.close(lock)

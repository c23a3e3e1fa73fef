"""A Windows machine under wine for the tests: a state folder, a folder to work in, and programs of Windows Python there."""

import json
import os
import subprocess
import threading
from contextlib import suppress
from typing import Any

from support.finished import finished
from windows import wine

DEADLINE_S = 300


class Machine:
    """A folder on drive C: with a state folder and a folder to work in."""

    def __init__(self, name: str) -> None:
        wine.python()
        self.root = wine.FOLDER / "prefix" / "drive_c" / "tests" / name
        self.work = self.root / "work"
        self.there = f"C:\\tests\\{name}"
        self.environment = wine.environment() | {
            "COMPUTER_LINKER_HOME": f"{self.there}\\state", "COMPUTER_LINKER_RENDER": "json",
        }  # fmt: skip

    def set_up(self) -> None:
        """Boot wine, which stays up until `close`, and make the folders; the first program of a prefix makes drive C:."""
        self._awake = self.started("-c", "print(1, flush=True); input()")
        assert self._awake.stdout is not None and self._awake.stdout.readline().strip() == b"1"
        self.work.mkdir(parents=True)
        (self.work / "notes.txt").write_bytes(b"first\n")
        done = self.run("-m", "computer_linker", "setup", f"{self.there}\\work", "--shell")
        assert done.returncode == 0, done.stderr

    def close(self) -> None:
        """End the service, and then what keeps wine up."""
        self.run("-m", "computer_linker", "stop")
        assert self._awake.stdin is not None and self._awake.stdout is not None and self._awake.stderr is not None
        self._awake.stdin.write(b"\n")
        self._awake.stdin.close()
        self._awake.wait(DEADLINE_S)
        # Wine's services may still hold the other ends.
        self._awake.stdout.close()
        self._awake.stderr.close()

    def run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run Windows Python to its end. It needs real pipes for its streams."""
        done = finished(self._argv(*arguments), self.environment, deadline_s=DEADLINE_S)
        out, err = (text.decode(errors="replace").replace("\r\n", "\n") for text in (done.stdout, done.stderr))
        return subprocess.CompletedProcess(done.args, done.returncode, out, err)

    def started(self, *arguments: str) -> "subprocess.Popen[bytes]":
        pipe = subprocess.PIPE
        return subprocess.Popen(self._argv(*arguments), env=self.environment, stdin=pipe, stdout=pipe, stderr=pipe)

    def _argv(self, *arguments: str) -> list[str]:
        program = wine.program()
        assert program is not None
        return [program, str(wine.python()), *arguments]


class Client:
    """A client of `stdio`, which starts the service."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._next = 0

    def __enter__(self) -> "Client":
        self._process = self._machine.started("-m", "computer_linker", "stdio")
        assert self._process.stderr is not None
        threading.Thread(target=_drain, args=(os.dup(self._process.stderr.fileno()),), daemon=True).start()
        self._process.stderr.close()
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "tests", "version": "1"}}
        self.request("initialize", hello)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        with suppress(OSError):
            self._process.stdin.close()
        self._process.wait(DEADLINE_S)
        self._process.stdout.close()

    def call(self, op: str, target: str | None = None, **more: object) -> dict[str, Any]:
        arguments = {"scope": "work", "op": op, "target": target, **more}
        result = self.request("tools/call", {"name": "computer_operation", "arguments": arguments})
        answer = dict(json.loads(result["content"][0]["text"]))
        print(op, target, answer)
        return answer

    def request(self, method: str, params: object) -> dict[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._next += 1
        message = {"jsonrpc": "2.0", "id": self._next, "method": method, "params": params}
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()
        late = threading.Timer(DEADLINE_S, self._process.kill)
        late.start()
        try:
            for line in self._process.stdout:
                answer = json.loads(line)
                if answer.get("id") == self._next:
                    return dict(answer["result"])
        finally:
            late.cancel()
        raise AssertionError("stdio ended")


def _drain(fd: int) -> None:
    """Read what nobody looks at to its end, which may come after the program's: wine's services inherit it."""
    with suppress(OSError):
        while os.read(fd, 65536):
            pass
    os.close(fd)

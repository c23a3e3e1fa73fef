"""`sudo` inside a sandbox: a small program there that asks the service over a socket of this command's own."""

import asyncio
import json
from collections.abc import Coroutine, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from computer_linker.computer.facets.processes import StagedText
from computer_linker.model.envelope import Call
from computer_linker.providers.sandbox.boundary import Confinement
from computer_linker.providers.sandbox.inner_socket import InnerSocket
from computer_linker.services import Services
from computer_linker.system import os

if TYPE_CHECKING:
    from computer_linker.providers.processes.prepare import CommandRequest

_FOLDER = "/run/computer-linker"
BIN = f"{_FOLDER}/bin"
_NAMES = ("sudo", "doas", "pkexec")
_MAX_REQUEST = 262_144
_REQUEST_S = 10.0
_SHIM = f"""#!/usr/bin/python3 -I
import json, os, socket, sys
argv = sys.argv[1:]
while argv and argv[0] in ("-n", "--", "-E", "-H"):
    if argv.pop(0) == "--":
        break
if not argv or argv[0].startswith("-"):
    sys.exit("sudo: only `sudo COMMAND...` is passed on to the owner of this computer")
asking = socket.socket(socket.AF_UNIX)
asking.connect("{_FOLDER}/elevation/ask")
asking.sendall(json.dumps({{"argv": argv, "cwd": os.getcwd()}}).encode() + b"\\n")
answer = json.loads(asking.makefile().read())
sys.stdout.write(answer["stdout"]); sys.stdout.flush()
sys.stderr.write(answer["stderr"])
sys.exit(answer["exitCode"])
"""


class Elevation(InnerSocket):
    """The socket of one command, from its planning to its end."""

    def __init__(self, services: Services, asker: "CommandRequest") -> None:
        self._services, self._asker = services, asker
        super().__init__(services.home / "elevation", f"{_FOLDER}/elevation/ask", self._ask, max_line=_MAX_REQUEST)

    def shown_in(self, confinement: Confinement) -> Confinement:
        """The confinement with the socket and the programs that ask."""
        # Also in the place of the real ones, which have no rights inside: a command may name one by its path.
        places = (
            *(f"{BIN}/{name}" for name in _NAMES),
            *filter(os.path.exists, (f"/usr/bin/{name}" for name in _NAMES)),
        )
        programs = (StagedText(place, _SHIM) for place in places)
        return replace(super().shown_in(confinement), files=(*confinement.files, *programs))

    async def _ask(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(_REQUEST_S):
            asked = _asked(await reader.readline())
        if asked is None:
            answer: Mapping[str, Any] | None = _failure("sudo: the request cannot be read")
        else:
            answer = await self._while_connected(reader, self._answer(*asked))
        if answer is not None:
            writer.write(json.dumps(answer).encode())
            await writer.drain()

    async def _while_connected(
        self, reader: asyncio.StreamReader, work: Coroutine[Any, Any, Mapping[str, Any]]
    ) -> Mapping[str, Any] | None:
        """The answer; None where the program that asks is gone first, which ends what it asked for."""
        answering, gone = asyncio.ensure_future(work), asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait((answering, gone), return_when=asyncio.FIRST_COMPLETED)
            return answering.result() if answering.done() else None
        finally:
            answering.cancel()
            gone.cancel()
            await asyncio.gather(answering, gone, return_exceptions=True)

    async def _answer(self, cwd: str, argv: list[str]) -> Mapping[str, Any]:
        assert self._services.call is not None, "a service has a dispatcher"
        call = Call(self._asker.scope.id, "command.elevate", target=cwd, input={"command": argv})
        envelope = await self._services.call(call, self._asker.principal)
        return envelope["data"] if envelope["ok"] else _failure(f"sudo: {envelope['error']['message']}")


def _asked(line: bytes) -> tuple[str, list[str]] | None:
    try:
        asked = json.loads(line)
        cwd, argv = asked["cwd"], asked["argv"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    is_plain = isinstance(cwd, str) and isinstance(argv, list) and all(isinstance(word, str) for word in argv)
    return (cwd, argv) if is_plain else None


def _failure(text: str) -> dict[str, Any]:
    return {"stdout": "", "stderr": f"{text}\n", "exitCode": 1}

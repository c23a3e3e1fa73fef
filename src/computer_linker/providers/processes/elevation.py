"""`sudo` inside a sandbox: a small program there that asks the service over a socket of this command's own."""

import asyncio
import json
import os
import shutil
import socket
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from computer_linker.computer.facets.processes import StagedText
from computer_linker.model.ids import new_handle
from computer_linker.providers.sandbox.boundary import Confinement, Folder
from computer_linker.services import Services

if TYPE_CHECKING:
    from computer_linker.providers.processes.prepare import CommandRequest

_FOLDER = "/run/computer-linker"
BIN = f"{_FOLDER}/bin"
_NAMES = ("sudo", "doas", "pkexec")
_MAX_REQUEST = 262_144
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


class Elevation:
    """The socket of one command, from its planning to its end."""

    def __init__(self, services: Services, asker: "CommandRequest") -> None:
        self._services, self._asker = services, asker
        self._place = services.home / "elevation" / new_handle("ask")
        self._place.mkdir(mode=0o700, parents=True)
        self._tasks: set[asyncio.Task[None]] = set()
        folder = os.open(self._place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._listener = socket.socket(socket.AF_UNIX)
        # By descriptor, because a socket's path is limited to a hundred characters.
        self._listener.bind(f"/proc/self/fd/{folder}/ask")
        self._listener.listen(16)
        self._listener.setblocking(False)
        self.folder = Folder(folder, f"{_FOLDER}/elevation")
        self._start(self._accept())

    def shown_in(self, confinement: Confinement) -> Confinement:
        """The confinement with the socket and the programs that ask."""
        # Also in the place of the real ones, which have no rights inside: a command may name one by its path.
        places = (
            *(f"{BIN}/{name}" for name in _NAMES),
            *filter(os.path.exists, (f"/usr/bin/{name}" for name in _NAMES)),
        )
        programs = (StagedText(place, _SHIM) for place in places)
        return replace(confinement, own=(*confinement.own, self.folder), files=(*confinement.files, *programs))

    def close(self) -> None:
        """End what waits; called once the command has ended."""
        for task in list(self._tasks):
            task.cancel()
        self._listener.close()
        shutil.rmtree(self._place, ignore_errors=True)

    def _start(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            client, _ = await loop.sock_accept(self._listener)
            self._start(self._served(client))

    async def _served(self, client: socket.socket) -> None:
        reader, writer = await asyncio.open_unix_connection(sock=client, limit=_MAX_REQUEST)
        try:
            asked = _asked(await reader.readline())
            answer = _failure("sudo: the request cannot be read") if asked is None else await self._answer(*asked)
            writer.write(json.dumps(answer).encode())
            await writer.drain()
        except (OSError, ValueError):
            pass
        finally:
            writer.close()

    async def _answer(self, cwd: str, argv: list[str]) -> Mapping[str, Any]:
        assert self._services.elevate is not None, "a service has a dispatcher"
        envelope = await self._services.elevate(self._asker.scope.id, self._asker.principal, cwd, argv)
        return envelope["data"] if envelope["ok"] else _failure(f"sudo: {envelope['error']['message']}")


def _asked(line: bytes) -> tuple[str, list[str]] | None:
    try:
        asked = json.loads(line)
        cwd, argv = asked["cwd"], asked["argv"]
    except (ValueError, KeyError, TypeError):
        return None
    is_plain = isinstance(cwd, str) and isinstance(argv, list) and all(isinstance(word, str) for word in argv)
    return (cwd, argv) if is_plain else None


def _failure(text: str) -> dict[str, Any]:
    return {"stdout": "", "stderr": f"{text}\n", "exitCode": 1}

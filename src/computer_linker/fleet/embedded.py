"""The hub's embedded nats-server, for trying a fleet on one machine: loopback only, a key per machine, local JetStream."""

import asyncio
import json
import logging
import os
import signal
import socket
import sysconfig
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from computer_linker.config.store import write_whole
from computer_linker.errors import ProviderUnavailable
from computer_linker.extras import remedy
from computer_linker.fleet import messages
from computer_linker.fleet.settings import Invited
from computer_linker.fleet.tasks import cancel, restarting_task
from computer_linker.model.scope import Scope
from computer_linker.policy.writers import find_program, writers_of

log = logging.getLogger(__name__)

_CONF, _PID, _LOG = "nats-server.conf", "nats-server.pid", "nats-server.log"
_START_S = 15.0
_FREE_S = 5.0
_MAX_PAYLOAD = 8 << 20
# Stops the server when our end of the pipe closes, however we end; exits itself when the server does.
_GUARD = (
    'exec 3<&0; "$@" 3<&- & p=$!; { read -r _ <&3; kill "$p"; } & r=$!; wait "$p"; c=$?; kill "$r" 2>/dev/null; exit $c'
)


class EmbeddedServer:
    """The child process and its settings file."""

    def __init__(self, home: Path, port: int, scopes: Callable[[], Iterable[Scope]]) -> None:
        self._folder, self.port, self._scopes = home / "nats", port, scopes
        self._child: asyncio.subprocess.Process | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self, hub: str, hub_key: str, invited: list[Invited]) -> None:
        """Start it and wait until it listens. Raises ProviderUnavailable with the reason."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        self._configure(hub, hub_key, invited)
        await self._until_free()
        await self._launch()
        self._tasks = [restarting_task(self._watch, "the watch over the hub's server")]

    async def admit(self, hub: str, hub_key: str, invited: list[Invited]) -> None:
        """Admit these machines and no others, without closing the connections of those that stay."""
        self._configure(hub, hub_key, invited)
        try:
            os.kill(int((self._folder / _PID).read_text()), signal.SIGHUP)
        except (OSError, ValueError) as error:
            raise ProviderUnavailable("The hub's own server could not be told who may use it.") from error

    async def aclose(self) -> None:
        """Stop the server."""
        await cancel(self._tasks)
        child, self._child = self._child, None
        if child is not None and child.stdin is not None:
            child.stdin.close()
            try:
                async with asyncio.timeout(10):
                    await child.wait()
            except TimeoutError:
                child.kill()

    async def _until_free(self) -> None:
        """Wait until the port is free: the server of a killed run exits shortly after it."""
        try:
            async with asyncio.timeout(_FREE_S):
                while _listens(self.port):  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise ProviderUnavailable(
                f"Port {self.port} is in use; the hub's own server cannot listen there."
            ) from None

    async def _launch(self) -> None:
        with (self._folder / _LOG).open("wb") as log_file:
            # In its own session: the hub handles Ctrl-C in its terminal, and stops its server last.
            self._child = await asyncio.create_subprocess_exec(
                "/bin/sh", "-c", _GUARD, "sh", server_program(self._scopes()), "-c", os.fspath(self._folder / _CONF),
                stdin=asyncio.subprocess.PIPE, stdout=log_file, stderr=log_file, start_new_session=True,
            )  # fmt: skip
        try:
            async with asyncio.timeout(_START_S):
                # Only its log reports when it listens.
                while not _listens(self.port):
                    if self._child.returncode is not None:
                        raise ProviderUnavailable(f"The hub's own server did not start: {self._last_output()}")
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise ProviderUnavailable(f"The hub's own server did not start: {self._last_output()}") from None

    async def _watch(self) -> None:
        """Restart it when it exits unexpectedly."""
        while self._child is not None:
            await self._child.wait()
            log.warning("the embedded server exited: %s", self._last_output())
            await asyncio.sleep(1)
            try:
                await self._launch()
            except ProviderUnavailable as error:
                log.error("%s", error.message)

    def _last_output(self) -> str:
        lines = (self._folder / _LOG).read_text("utf-8", "replace").splitlines()
        return lines[-1][:300] if lines else "it said nothing"

    def _configure(self, hub: str, hub_key: str, invited: list[Invited]) -> None:
        users = [_user(hub_key, messages.hub_permissions(hub))]
        usable = [one for one in invited if one.used_by is not None or one.expires_at > time.time()]
        users += [_user(one.server_key, messages.machine_permissions(one.seat)) for one in usable]
        settings = {
            "listen": f"127.0.0.1:{self.port}",
            "server_name": "computer-linker-hub",
            "pid_file": os.fspath(self._folder / _PID),
            "max_payload": _MAX_PAYLOAD,
            "jetstream": {
                "store_dir": os.fspath(self._folder / "jetstream"),
                "max_memory_store": 64 << 20,
                "max_file_store": 1 << 30,
            },
            "authorization": {"users": users},
        }
        # The server's configuration format is a superset of JSON.
        write_whole(self._folder, _CONF, json.dumps(settings, indent=1).encode())


def free_port() -> int:
    """Return a loopback port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _user(key: str, permissions: dict[str, list[str]]) -> dict[str, Any]:
    return {"nkey": key, "permissions": {name: {"allow": allowed} for name, allowed in permissions.items()}}


def server_program(scopes: Iterable[Scope]) -> str:
    """The path of nats-server, where no scope can write. Raises ProviderUnavailable when it is not installed."""
    first = (sysconfig.get_path("scripts"), *os.environ.get("PATH", "").split(os.pathsep))
    found = find_program("nats-server", first, writers_of(scopes))
    if found is None:
        raise ProviderUnavailable(f"The hub's own server is not installed. {remedy('fleet')}")
    return found


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0

"""A UNIX socket of the service that one command sees inside its sandbox."""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from computer_linker.model.ids import new_handle
from computer_linker.providers.sandbox.boundary import Confinement, Folder
from computer_linker.system import os

log = logging.getLogger(__name__)
_MAX_CLIENTS = 16
"""Connections of one command at a time; further ones wait in the socket's queue, whose length the kernel bounds."""
_RETRY_S = 0.2
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class InnerSocket:
    """From the planning of the command to its end. `inside` is the socket's path there, in a folder of its own."""

    def __init__(self, place: Path, inside: str, serve: Serve, *, max_line: int = 65_536) -> None:
        self._place = place / new_handle("socket")
        self._place.mkdir(mode=0o700, parents=True)
        self._serve, self._max_line = serve, max_line
        self._tasks: set[asyncio.Task[None]] = set()
        self._clients = asyncio.Semaphore(_MAX_CLIENTS)
        folder, _, self._name = inside.rpartition("/")
        fd = os.open(self._place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._listener = socket.socket(socket.AF_UNIX)
        # By descriptor, because a socket's path is limited to a hundred characters.
        self._listener.bind(f"/proc/self/fd/{fd}/{self._name}")
        self._listener.listen(_MAX_CLIENTS)
        self._listener.setblocking(False)
        # Only read: it lies in the state folder, where a command must leave nothing.
        self.folder = Folder(fd, folder, only_read=True)
        self._start(self._accept())

    def shown_in(self, confinement: Confinement) -> Confinement:
        """The confinement with the socket."""
        return replace(confinement, own=(*confinement.own, self.folder))

    def close(self) -> None:
        """End what waits; called once the command has ended."""
        for task in list(self._tasks):
            task.cancel()
        self._listener.close()
        with suppress(OSError):
            (self._place / self._name).unlink()
            self._place.rmdir()

    def _start(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._clients.acquire()
            try:
                client, _ = await loop.sock_accept(self._listener)
            except OSError as error:
                # There are no descriptors left, which passes.
                log.warning("a connection of a command was not accepted: %s", error)
                self._clients.release()
                await asyncio.sleep(_RETRY_S)
                continue
            # A task that is cancelled before its first step closes nothing itself.
            self._start(self._served(client)).add_done_callback(
                lambda task, client=client: client.close() if task.cancelled() else None  # type: ignore[misc]
            )

    async def _served(self, client: socket.socket) -> None:
        try:
            reader, writer = await asyncio.open_unix_connection(sock=client, limit=self._max_line)
            with closing(writer), suppress(OSError, EOFError, TimeoutError, ValueError):
                await self._serve(reader, writer)
        finally:
            self._clients.release()

"""A real nats-server of the test's own, on a port of loopback, that can be killed and started again."""

import json
import os
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

from computer_linker.fleet.embedded import free_port, server_program

DEADLINE_S = 20.0


class NatsServer:
    """One server. It keeps its port and its store over a restart."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.port = free_port()
        self.url = f"nats://127.0.0.1:{self.port}"
        config = {
            "listen": f"127.0.0.1:{self.port}",
            "jetstream": {"store_dir": str(folder / "store"), "max_file_store": 1 << 30},
            **settings,
        }
        # The server's own format is a superset of JSON.
        (folder / "server.conf").write_text(json.dumps(config))
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> "NatsServer":
        log = (self.folder / "log").open("ab")
        self._process = subprocess.Popen(
            [server_program(), "-c", str(self.folder / "server.conf")], stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
        log.close()
        deadline = time.monotonic() + DEADLINE_S
        while not _listens(self.port):
            assert time.monotonic() < deadline and self._process.poll() is None, (self.folder / "log").read_text()
            time.sleep(0.02)
        return self

    def kill(self) -> None:
        """End it without a goodbye."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(DEADLINE_S)
            self._process = None

    def freeze(self) -> None:
        """Cut everyone off without a word: connections stay, nothing passes."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGCONT)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0

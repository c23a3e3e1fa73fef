"""The far side of the peer benchmarks: a service of its own process, and next to it the bare things it is compared with."""

import asyncio
import json
import os
import socket
import ssl
import sys
import threading
import time
from pathlib import Path

from websockets.asyncio.server import ServerConnection, serve

from computer_linker.computer.local.probe import this_computer
from computer_linker.config.schema import Config
from computer_linker.model.scope import Scope
from computer_linker.providers.shots import shoot
from computer_linker.service.app import open_app
from computer_linker.transports.peer.identity import as_file
from computer_linker.transports.peer.server import PeerServer

FOLDER = ["fs:read", "fs:write"]


async def _main(home: Path, root: Path) -> None:
    scopes = [
        {"id": "app", "type": "folder", "roots": [str(root)], "capabilities": FOLDER},
        {"id": "desk", "type": "computer", "capabilities": ["screen:capture"]},
    ]
    config = Config(machine_id="far-id", machine_name="far", scopes=[Scope.from_wire(scope) for scope in scopes])
    async with open_app(home, lambda: config, this_computer()) as app:
        server = PeerServer(app.services, app.dispatcher)
        await server.listen("127.0.0.1", 0)
        # The same keys and the same TLS for what it is compared with.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        with as_file(server.identity.key_pem) as key_path:
            context.load_cert_chain(server.identity.cert_path, key_path)

        async def bare(link: ServerConnection) -> None:
            picture = b""
            async for raw in link:
                if raw == b"shoot":
                    began = time.perf_counter()
                    picture = (await shoot(app.computer)).pixmap.data
                    await link.send(str(time.perf_counter() - began).encode())
                elif raw == b"send":
                    await link.send(picture)
                else:
                    await link.send(raw)

        echo = await serve(bare, "127.0.0.1", 0, ssl=context, compression=None, max_size=1 << 26)
        sink = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=_sink, args=(sink, context, root), daemon=True).start()
        ports = [server.address[1], echo.sockets[0].getsockname()[1], sink.getsockname()[1]]  # type: ignore[index]  # it listens
        code = server.invitations.make(("app", "desk")).code
        print(json.dumps({"ports": ports, "code": code, "pid": os.getpid()}), flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
        echo.close()
        await server.aclose()


def _sink(listener: socket.socket, context: ssl.SSLContext, root: Path) -> None:
    """A plain TLS socket that writes what comes to a file, and answers once it is on the disk."""
    while True:
        raw, _ = listener.accept()
        with context.wrap_socket(raw, server_side=True) as link, (root / "plain.bin").open("wb", buffering=0) as file:
            buffer, left = memoryview(bytearray(1 << 20)), int.from_bytes(link.recv(8), "big")
            while left:
                filled = 0
                while filled < min(left, len(buffer)):
                    filled += link.recv_into(buffer[filled : min(left, len(buffer))])
                file.write(buffer[:filled])
                left -= filled
            os.fsync(file.fileno())
            link.sendall(b"\x01")


if __name__ == "__main__":
    from benchmarks.peers import as_the_service

    as_the_service(_main(Path(sys.argv[1]), Path(sys.argv[2])))

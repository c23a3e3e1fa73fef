"""A stream and the call it belongs to come on two connections, so either may be the first."""

import secrets
import socket
import threading
from pathlib import Path

import pytest

from computer_linker.transports.peer.bulk import TICKET, Bulk
from computer_linker.transports.peer.identity import own_identity
from computer_linker.transports.peer.tls import client_context, server_context


def test_a_stream_that_is_faster_than_its_call_is_let_in_and_not_noted_as_refused(tmp_path: Path) -> None:
    (desk_home := tmp_path / "desk").mkdir()
    (laptop_home := tmp_path / "laptop").mkdir()
    desk, laptop = own_identity(desk_home, "desk-id"), own_identity(laptop_home, "laptop-id")
    refused: list[str | None] = []
    bulk, ticket = Bulk(), secrets.token_bytes(TICKET)
    with socket.create_server(("127.0.0.1", 0)) as door:
        near = socket.create_connection(door.getsockname(), timeout=30)
        far, _ = door.accept()
    context = server_context(laptop, [desk.cert_pem])
    hall = threading.Thread(target=lambda: refused.append(bulk.take(far, context)))
    hall.start()
    with client_context(desk, laptop.cert_pem).wrap_socket(near, server_hostname="x") as link:
        link.sendall(ticket)
        link.settimeout(0.3)
        with pytest.raises(TimeoutError):
            link.recv(1)
        with bulk.expected(ticket, desk.fingerprint):
            hall.join(30)
            assert refused == [None]

"""A stream and the call it belongs to come on two connections, so either may be the first, and the call may be over."""

import secrets
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from computer_linker.transports.peer.bulk import TICKET, Bulk
from computer_linker.transports.peer.identity import Identity, client_context, own_identity, server_context


class Two:
    """Two machines that know each other's key; streams go from the desk to the laptop."""

    def __init__(self, folder: Path) -> None:
        self.bulk, self.ticket = Bulk(), secrets.token_bytes(TICKET)
        self.desk, self.laptop, self.other = (self._machine(folder / name) for name in ("desk", "laptop", "other"))

    @staticmethod
    def _machine(home: Path) -> Identity:
        home.mkdir()
        return own_identity(home, f"{home.name}-id")

    @contextmanager
    def stream(self, of: Identity, refused: list[str | None]) -> Iterator[tuple[ssl.SSLSocket, threading.Thread]]:
        """A stream that has said its ticket, and the thread that lets it in or says why not."""
        with socket.create_server(("127.0.0.1", 0)) as door:
            near = socket.create_connection(door.getsockname(), timeout=30)
            far, _ = door.accept()
        context = server_context(self.laptop, [self.desk.cert_pem, self.other.cert_pem])
        hall = threading.Thread(target=lambda: refused.append(self.bulk.take(far, context)))
        hall.start()
        with client_context(of, self.laptop.cert_pem).wrap_socket(near, server_hostname="x") as link:
            link.sendall(self.ticket)
            yield link, hall
        hall.join(30)


@pytest.fixture
def two(tmp_path: Path) -> Two:
    return Two(tmp_path)


def test_a_stream_that_is_faster_than_its_call_is_let_in_and_not_noted_as_refused(two: Two) -> None:
    refused: list[str | None] = []
    with two.stream(two.desk, refused) as (link, hall):
        link.settimeout(0.3)
        with pytest.raises(TimeoutError):
            link.recv(1)
        with two.bulk.expected(two.ticket, two.desk.fingerprint):
            hall.join(30)
            assert refused == [None]


def test_a_stream_whose_call_is_over_is_ended_at_once_and_not_noted_as_refused(two: Two) -> None:
    with two.bulk.expected(two.ticket, two.desk.fingerprint):
        pass
    refused: list[str | None] = []
    with two.stream(two.desk, refused) as (link, hall):
        assert link.recv(1) == b""
        hall.join(30)
    assert refused == [None]


def test_a_ticket_of_a_call_that_is_over_helps_no_other_machine(two: Two) -> None:
    with two.bulk.expected(two.ticket, two.desk.fingerprint):
        pass
    refused: list[str | None] = []
    with two.stream(two.other, refused) as (link, hall):
        assert link.recv(1) == b""
        hall.join(30)
    assert refused == ["bad_ticket"]


def test_only_the_newest_calls_that_are_over_are_remembered(two: Two) -> None:
    for _ in range(1000):
        with two.bulk.expected(secrets.token_bytes(TICKET), two.desk.fingerprint):
            pass
    assert len(two.bulk._ended) <= 256

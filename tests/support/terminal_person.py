"""A person at `computer-linker approvals` in a terminal of their own, who answers every question the same way."""

import os
import pty
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from support.service import PROGRAM, Service, environment, wait_for

_QUESTION, _PROMPT = b"  y  once:", b"Allow? ["


class TerminalPerson:
    """`seen` is all that the terminal showed."""

    def __init__(self, terminal: int, key: str | None) -> None:
        self._terminal, self._key = terminal, key
        self.seen = bytearray()
        self.answered = 0

    @property
    def asked(self) -> int:
        """How many questions were shown that take an answer by now."""
        return sum(_PROMPT in each for each in self.seen.split(_QUESTION)[1:])

    def press(self, key: str, *, at_once: bool = False) -> None:
        """Answer the question on the screen, once it takes an answer; `at_once` does not wait for that."""
        if not at_once:
            wait_for(lambda: self.asked == self.seen.count(_QUESTION))
        os.write(self._terminal, f"{key}\n".encode())

    def read(self) -> None:
        """Answer each question as it comes, until the terminal is closed."""
        try:
            while data := os.read(self._terminal, 65536):
                self.seen += data
                while self._key is not None and self.asked > self.answered:
                    self.answered += 1
                    os.write(self._terminal, f"{self._key}\n".encode())
        except OSError:
            return


@contextmanager
def person_at_terminal(service: Service, key: str | None) -> Iterator[TerminalPerson]:
    """The person is there while the body runs: calls wait for them. Without a key they only look."""
    parent, child = pty.openpty()
    live = subprocess.Popen(
        [*PROGRAM, "approvals"], env=environment(service.home), stdin=child, stdout=child, stderr=child
    )
    os.close(child)
    person = TerminalPerson(parent, key)
    reader = threading.Thread(target=person.read, daemon=True)
    reader.start()
    try:
        wait_for(lambda: b"Waiting for requests" in person.seen)
        yield person
    finally:
        live.kill()
        live.wait()
        reader.join(10)
        os.close(parent)

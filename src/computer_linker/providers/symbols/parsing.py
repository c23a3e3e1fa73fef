"""Parses many contents in a child process, and continues when one of them crashes it."""

import json
import sys
from dataclasses import dataclass

from computer_linker.errors import Aborted
from computer_linker.providers.child import ProcessGroup, Spec, fenced
from computer_linker.providers.symbols.extract import Symbol

_MEMORY = 1 << 30
_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "PYTHONUTF8": "1"}
_MAX_DEATHS = 5


@dataclass(frozen=True, slots=True)
class Source:
    """A content to parse, with its key."""

    digest: bytes
    language: str
    content: bytes


@dataclass(slots=True)
class Parsed:
    """The results; `missing` are languages without an installed grammar."""

    symbols: dict[bytes, list[Symbol]]
    missing: set[str]
    failed: int = 0


def parse(sources: list[Source], group: ProcessGroup) -> Parsed:
    """The symbols of each source. One that crashes or stalls its grammar counts as failed and has none."""
    done = Parsed({}, set())
    left = list(sources)
    while left and done.failed < _MAX_DEATHS:
        answered = _batch(left, group, done)
        if answered < len(left):
            if group.is_cancelled:
                raise Aborted("The caller no longer waits for this.")
            done.failed += 1
            # Cached as empty, so that it is not parsed again at every query.
            done.symbols[left[answered].digest] = []
            answered += 1
        left = left[answered:]
    return done


def _batch(sources: list[Source], group: ProcessGroup, done: Parsed) -> int:
    """Feed a child until it ends; the number of sources it answered."""
    stream = b"".join(_framed(source) for source in sources)
    argv = [sys.executable, "-I", "-m", "computer_linker.providers.symbols.worker"]
    answered = 0
    with group.running(fenced(Spec(argv, "/", _ENVIRONMENT, stdin=stream, max_memory=_MEMORY))) as child:
        pending = b""
        while piece := child.read():
            *lines, pending = (pending + piece).split(b"\n")
            for line in lines:
                answer = json.loads(line)
                source = sources[answered]
                answered += 1
                if answer is None:
                    done.missing.add(source.language)
                else:
                    done.symbols[source.digest] = [Symbol(*fields) for fields in answer]
    return answered


def _framed(source: Source) -> bytes:
    header = json.dumps({"language": source.language, "size": len(source.content)}).encode()
    return header + b"\n" + source.content

"""Ask an address over HTTP: one bounded GET, no redirect followed, no proxy in between."""

from dataclasses import dataclass
from urllib.parse import urlsplit

import anyio.to_thread

from computer_linker.errors import ExecutionFailed

_MAX_BODY = 65_536


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status: int
    body: bytes


async def get(url: str, *, seconds: float) -> Answer:
    """The answer to a GET. Raises ExecutionFailed naming what did not work: the name, the connection, or TLS."""
    return await anyio.to_thread.run_sync(_get, url, seconds, abandon_on_cancel=True)


def _get(url: str, seconds: float) -> Answer:
    # Here, not above: a service that has no tunnel need not hold them.
    import http.client
    import socket
    import ssl

    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    link = kind(parts.hostname or "", parts.port, timeout=seconds)
    try:
        link.request("GET", parts.path or "/", headers={"Accept": "application/json"})
        answer = link.getresponse()
        return Answer(answer.status, answer.read(_MAX_BODY))
    except socket.gaierror as error:
        raise ExecutionFailed(f"The name {parts.hostname} is not known.") from error
    except ssl.SSLError as error:
        raise ExecutionFailed(f"TLS with {parts.hostname} fails: {error.reason or error}.") from error
    except (OSError, http.client.HTTPException) as error:
        raise ExecutionFailed(f"{parts.hostname} does not answer: {error}.") from error
    finally:
        link.close()

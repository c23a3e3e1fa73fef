"""cua-driver: a driver of desktops that makes screenshots."""

from computer_linker.computer.base import Computer
from computer_linker.providers.backends.definition import Backend, ExternalBackend, Find, by_version


async def _probe(computer: Computer, find: Find) -> Backend:
    return await by_version(computer, find, "cua-driver", ("screenshot",))


BACKEND = ExternalBackend("cua-driver", _probe)

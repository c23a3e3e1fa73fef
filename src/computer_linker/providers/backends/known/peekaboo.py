"""Peekaboo: screenshots on macOS."""

from computer_linker.computer.base import Computer
from computer_linker.providers.backends.definition import Backend, ExternalBackend, Find, by_version


async def _probe(computer: Computer, find: Find) -> Backend:
    return await by_version(computer, find, "peekaboo", ("screenshot",))


BACKEND = ExternalBackend("peekaboo", _probe)

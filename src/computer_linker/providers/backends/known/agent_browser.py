"""agent-browser: a browser for agents, which leaves its files in a folder of its own."""

from computer_linker.computer.base import Computer
from computer_linker.providers.backends.definition import KINDS, Backend, ExternalBackend, Find, by_version

_CLOSED = frozenset({"auth", "sessions", "state", "states", "profiles", "cookies", "browsers", "config.json"})
"""Saved logins, cookies and settings."""


async def _probe(computer: Computer, find: Find) -> Backend:
    return await by_version(computer, find, "agent-browser", (*KINDS, "network_log", "document"))


BACKEND = ExternalBackend("agent-browser", _probe, output_folder="~/.agent-browser", closed=_CLOSED)

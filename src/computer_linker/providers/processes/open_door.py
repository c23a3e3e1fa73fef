"""Whether the service answers this machine without a credential, as a command that has the network could use it."""

from collections.abc import Callable
from typing import Any, Self

from computer_linker.errors import PermissionDenied


class OpenDoor:
    """The port the service listens on, and whether it asks who comes."""

    def __init__(self, asks_for_token: Callable[[], bool]) -> None:
        self._asks_for_token = asks_for_token
        self.is_listening = False

    @classmethod
    def open(cls, services: Any) -> Self:
        return cls(lambda: services.config.owner_token is not None)

    def refuse_network(self) -> None:
        """Refuse a command the network while the service would take its requests for the owner's."""
        if self.is_listening and not self._asks_for_token():
            raise PermissionDenied(
                "This scope gives commands the network, and the service answers everyone on this machine without a token: "
                "a command could call it and use every scope. Make a token first: computer-linker token rotate",
                rule="network",
            )

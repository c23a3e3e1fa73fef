"""Actions that the service adds to the JSON API: client setup and status."""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import anyio

from computer_linker.errors import InvalidRequest, PermissionDenied
from computer_linker.model.envelope import Reply
from computer_linker.model.principal import Principal
from computer_linker.service.app import App

Action = Callable[[dict[str, Any], Principal], Awaitable[Reply]]


class Listening(Protocol):
    """Where the service can be reached over HTTP."""

    local_url: str | None


def service_actions(app: App, listening: Listening) -> dict[str, Action]:
    """`client_setup` and `doctor`. Both are for the owner: an OAuth client has only what it was given."""

    async def client_setup(arguments: dict[str, Any], principal: Principal) -> Reply:
        async def work() -> dict[str, Any]:
            from computer_linker.service.client_setup import client_lines

            _check(arguments, principal)
            # Never with the token: no network answer contains a credential.
            return client_lines(app.config, app.home, listening.local_url).to_wire()

        return await app.dispatcher.introspect("client_setup", principal, work)

    async def doctor(arguments: dict[str, Any], principal: Principal) -> Reply:
        async def work() -> dict[str, Any]:
            from computer_linker.service.doctor import diagnosis

            _check(arguments, principal)
            found = await anyio.to_thread.run_sync(diagnosis, app.config, app.home)
            return found.to_wire()

        return await app.dispatcher.introspect("doctor", principal, work)

    return {"client_setup": client_setup, "doctor": doctor}


def _check(arguments: dict[str, Any], principal: Principal) -> None:
    if principal.grants is not None or principal.is_remote:
        raise PermissionDenied("Only the owner may ask this, at this computer.")
    if arguments:
        raise InvalidRequest(f"Unknown field {min(arguments)!r}. This action takes none.")

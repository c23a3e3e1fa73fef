"""The tunnel of a service that may never have one: nothing of it is imported before it is wished for."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from computer_linker.config.live import LiveConfig
from computer_linker.service.app import App

if TYPE_CHECKING:
    from computer_linker.config.schema import TunnelName
    from computer_linker.service.tunnels import Doors, TunnelDesk
    from computer_linker.tunnels.record import TunnelRecord


class Tunnels:
    """Makes the desk for tunnels when somebody first comes to it."""

    def __init__(
        self, app: App, live: LiveConfig, doors: "Doors", announce: "Callable[[TunnelRecord], None] | None"
    ) -> None:
        self._app, self._live, self._doors, self._announce = app, live, doors, announce
        self._desk: TunnelDesk | None = None

    async def start(self, wished: "TunnelName | None") -> None:
        """Open what was wished for, or what the config says; nothing when neither says anything."""
        if wished is not None or self._app.config.tunnel.provider is not None:
            await self._made().start(wished)

    async def control(self, action: str, request: dict[str, Any]) -> dict[str, Any]:
        """One `tunnel.*` action."""
        return await self._made().control(action, request)

    def shown(self) -> dict[str, Any] | None:
        """The tunnel in short; None when there has been none."""
        return None if self._desk is None else self._desk.shown()

    async def aclose(self) -> None:
        """Close it."""
        if self._desk is not None:
            await self._desk.aclose()

    def _made(self) -> "TunnelDesk":
        from computer_linker.service.tunnels import TunnelDesk

        self._desk = self._desk or TunnelDesk(self._app, self._live, self._doors, self._announce)
        return self._desk

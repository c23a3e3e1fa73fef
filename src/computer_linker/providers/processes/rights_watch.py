"""Ends running processes whose rights the owner has taken since they were started."""

import asyncio
import logging
from collections.abc import Callable
from typing import Self

from computer_linker.computer.facets.processes import Child
from computer_linker.config.schema import Config
from computer_linker.errors import ConfigInvalid
from computer_linker.policy.engine import ProcessRights
from computer_linker.services import Services

log = logging.getLogger(__name__)
_EVERY_S = 0.5


class RightsWatch:
    """Compares the config with the rights of running processes, a few times a second and only while some run."""

    def __init__(self, config: Callable[[], Config]) -> None:
        self._config = config
        self._held: dict[Child, ProcessRights] = {}
        self._compared: Config | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.report: Callable[[ProcessRights], None] = lambda _rights: None
        """Called for each process that was ended."""

    @classmethod
    def open(cls, services: Services) -> Self:
        return cls(services.current_config)

    def hold(self, child: Child, rights: ProcessRights) -> None:
        """Watch a process until it ends."""
        # Between the call's judgement and here the config may have changed, so the next look compares in any case.
        self._compared = None
        self._held[child] = rights
        child.when_ended(lambda _ended: self._forget(child))
        self._look_later()

    async def aclose(self) -> None:
        self._held.clear()
        if self._timer is not None:
            self._timer.cancel()

    def _forget(self, child: Child) -> None:
        self._held.pop(child, None)
        if not self._held and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look_later(self) -> None:
        if self._timer is None and self._held:
            self._timer = asyncio.get_running_loop().call_later(_EVERY_S, self._look)

    def _look(self) -> None:
        self._timer = None
        try:
            config = self._config()
        except ConfigInvalid:
            # Every call is refused meanwhile; what the owner wants of running processes is not known.
            self._look_later()
            return
        if config is not self._compared:
            self._compared = config
            for child, rights in list(self._held.items()):
                if not rights.remain_in(config.scope(rights.scope_id)):
                    log.warning("a process of scope %s was ended: the scope no longer allows it", rights.scope_id)
                    child.kill()
                    self._held.pop(child, None)
                    self.report(rights)
        self._look_later()

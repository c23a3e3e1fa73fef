"""Supervises one tunnel: retries with exponential backoff and jitter, and stops when it must not be open."""

import asyncio
import logging
import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

from computer_linker.config.schema import Config, TunnelName
from computer_linker.errors import ConfigInvalid, ExecutionFailed, LinkError, PermissionDenied
from computer_linker.system import started_at
from computer_linker.tunnels.base import Detected, Reach, Surroundings, Tunnel
from computer_linker.tunnels.cloudflare import CloudflareNamed, CloudflareQuick
from computer_linker.tunnels.manual import ManualProxy
from computer_linker.tunnels.openai import OpenAiTunnel
from computer_linker.tunnels.record import TunnelRecord, now, save
from computer_linker.tunnels.ssh import SshTunnel
from computer_linker.tunnels.tailscale import TailscaleFunnel, TailscaleServe

log = logging.getLogger(__name__)

Changed = Callable[[TunnelRecord], None]


@dataclass(frozen=True, slots=True)
class Pace:
    """The retry policy: backoff, how many first attempts may fail, and when a connection counts as stable."""

    first_s: float = 1.0
    most_s: float = 300.0
    tries: int = 20
    steady_s: float = 60.0
    poll_s: float = 2.0

    def pause(self, failures: int) -> float:
        """Return the backoff: doubling up to the limit, with jitter so that machines do not retry at the same time."""
        # The exponent is bounded too: 2 ** 5000 overflows a float.
        return float(min(self.most_s, self.first_s * 2 ** min(failures - 1, 30))) * random.uniform(0.75, 1.25)  # noqa: S311  # no secret


class Supervisor:
    """One tunnel, from `run` until it is cancelled. `changed` is called with every new state."""

    def __init__(
        self, name: TunnelName, around: Surroundings, port: int, changed: Changed, pace: Pace | None = None
    ) -> None:
        self.name: TunnelName = name
        self._around = around
        self._port = port
        self._changed = changed
        self._pace = pace or Pace()
        self._failures = 0
        self._ever_open = False
        self._output: list[str] = []
        self.restarts = 0
        self.record = self._recorded("starting", None)

    async def run(self) -> None:
        """Open it and keep it open. Returns when it is refused or has failed too often; closes it when cancelled."""
        try:
            while await self._once():
                pause = self._pace.pause(self._failures)
                at = (datetime.now(UTC) + timedelta(seconds=pause)).isoformat(timespec="seconds")
                self._report("waiting", None, last_error=self.record.last_error, retry_at=at.replace("+00:00", "Z"))
                await asyncio.sleep(pause)
                self.restarts += 1
        except asyncio.CancelledError:
            self._report("stopped", None)
            raise

    def refuse(self, reason: str, hint: str) -> None:
        """Record that the tunnel cannot be opened."""
        self._report("refused", None, last_error=reason, hint=hint)

    async def _once(self) -> bool:
        """Run the tunnel once; returns whether to retry. The outcome is recorded after it has stopped."""
        tunnel = make(self.name, self._around)
        try:
            reason = await self._life(tunnel)
        except ExecutionFailed as error:
            # ConfigInvalid is one too: a file that is being edited is valid again in a moment.
            reason = error.message
        except LinkError as error:
            await asyncio.shield(tunnel.stop())
            self._report("refused", tunnel, last_error=error.message, hint=_hint(error))
            return False
        finally:
            await asyncio.shield(tunnel.stop())
        return self._failed(tunnel, reason)

    async def _life(self, tunnel: Tunnel) -> str:
        config = allowed(self._around.config())
        self._report("starting", tunnel, last_error=self.record.last_error)
        await tunnel.expose(self._port)
        self._ever_open = True
        self._report("running", tunnel)
        return await self._while_open(tunnel, config)

    async def _while_open(self, tunnel: Tunnel, config: Config) -> str:
        """Wait until it ends; returns the reason. Raises PermissionDenied when the owner token was removed meanwhile."""
        loop = asyncio.get_running_loop()
        opened_at = loop.time()
        over = asyncio.create_task(tunnel.ended())
        try:
            while True:
                done, _ = await asyncio.wait([over], timeout=self._pace.poll_s)
                if loop.time() - opened_at >= self._pace.steady_s:
                    self._failures = 0
                if done:
                    return over.result()
                state = "running" if tunnel.is_connected() else "reconnecting"
                if state != self.record.state:
                    self._report(state, tunnel)
                present = self._current(config)
                if tunnel.forwards_owner_token and present.owner_token != config.owner_token:
                    self._failures = 0
                    return "The owner token changed."
        finally:
            over.cancel()

    def _current(self, before: Config) -> Config:
        try:
            return allowed(self._around.config())
        except ConfigInvalid:
            # Every request is refused meanwhile; there is no reason to lose the URL over it.
            return before

    def _failed(self, tunnel: Tunnel, reason: str) -> bool:
        self._failures += 1
        log.warning("the %s tunnel is down: %s", self.name, reason)
        # A tunnel that was once connected is retried without end: a network outage may last until tomorrow.
        if self._failures >= self._pace.tries and not self._ever_open:
            hint = f"computer-linker tunnel start {self.name} tries again"
            self._report("failed", tunnel, last_error=f"{self._failures} tries failed. {reason}", hint=hint)
            return False
        self.record = self.record.model_copy(update={"last_error": reason[:1000]})
        return True

    def _report(self, state: Any, tunnel: Tunnel | None, **facts: Any) -> None:
        self.record = self._recorded(state, tunnel, **facts)
        try:
            save(self._around.home, self.record)
        except ConfigInvalid as error:
            log.warning("the state of the tunnel was not stored: %s", error.message)
        self._changed(self.record)

    def _recorded(self, state: Any, tunnel: Tunnel | None, **facts: Any) -> TunnelRecord:
        nothing: dict[str, Any] = {"pid": None, "pidStarted": None, "output": self._output}
        known = tunnel.status() if tunnel is not None else nothing
        self._output = known["output"] or self._output
        is_open = state in ("running", "reconnecting")
        for name in ("last_error", "hint"):
            if facts.get(name) is not None:
                facts[name] = facts[name][:1000]
        return TunnelRecord(
            provider=self.name,
            state=state,
            public_url=tunnel.public_url() if tunnel is not None and is_open else None,
            tunnel_id=known.get("tunnelId") if is_open else None,
            since=now(),
            restarts=self.restarts,
            port=self._port,
            pid=known["pid"] if is_open else None,
            pid_started=known["pidStarted"] if is_open else None,
            service_pid=os.getpid(),
            service_started=started_at(os.getpid()),
            output=known["output"],
            **facts,
        )


def allowed(config: Config) -> Config:
    """The config, when it allows exposure at all. Raises PermissionDenied."""
    if config.owner_token is None:
        raise PermissionDenied(
            "Nothing is exposed without an owner token.", hint="make one with: computer-linker token rotate"
        )
    return config


def _hint(error: LinkError) -> str | None:
    hint = error.details.get("hint")
    return str(hint) if hint else None


# The providers by name.

_KINDS = (CloudflareQuick, CloudflareNamed, TailscaleFunnel, TailscaleServe, OpenAiTunnel, SshTunnel, ManualProxy)
NAMES: tuple[str, ...] = get_args(TunnelName)


def make(name: TunnelName, around: Surroundings) -> Tunnel:
    """Create a tunnel of this provider, not opened yet."""
    kind = next(kind for kind in _KINDS if kind.name == name)
    return kind(around)


def detect_all(around: Surroundings) -> list[Detected]:
    """Each provider, and whether it can be used. Runs nothing."""
    return [kind(around).detect() for kind in _KINDS]


def reach_of(name: str, public_url: str | None) -> Reach:
    """Who reaches the address of an open tunnel. An https name on the owner's own server is public."""
    kind = next(kind for kind in _KINDS if kind.name == name)
    reach: Reach = kind.contract["modes"][0]["reach"]
    return "internet" if reach == "server" and (public_url or "").startswith("https:") else reach


def contracts() -> list[dict[str, Any]]:
    """The program of each provider, and the source of its URL."""
    return [kind.contract for kind in _KINDS]

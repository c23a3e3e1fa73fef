"""Gates of commands: one for each command whose scope lists its hosts, with the network it is started in."""

import asyncio
import os
import socket
import time
from collections.abc import Coroutine, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from computer_linker.computer.facets.processes import PROXY, InnerNetwork
from computer_linker.errors import ExecutionFailed, LinkError, PermissionDenied
from computer_linker.model.network import ASK, PRESETS, WEB_PORTS, Entry, address_of, parse_entry
from computer_linker.model.principal import Principal
from computer_linker.model.scope import Scope
from computer_linker.policy.writers import writer_of, writers_of
from computer_linker.providers.network.asking import Asking
from computer_linker.providers.network.gate import Gate
from computer_linker.providers.network.passage import Passage
from computer_linker.providers.network.presets import preset_entries, trusted_by
from computer_linker.providers.network.reach import NOT_LISTED, Own, Reach, Refused, Rules, own_ports
from computer_linker.providers.network.resolver import Resolver
from computer_linker.providers.network.stream import Stream
from computer_linker.providers.network.unanswered import AF_PACKET, Unanswered
from computer_linker.providers.sandbox.boundary import Confinement
from computer_linker.services import Services

if TYPE_CHECKING:
    from computer_linker.providers.network.command_secrets import CommandSecrets
    from computer_linker.providers.sandbox.inner_socket import InnerSocket

_PRESETS_S = 30.0
_KNOWN_S = 0.1
_MAX_EVENTS = 1000
"""Connections of one command that the history keeps one by one; of further ones, their number."""
_MAX_WARNINGS = 20
"""Refused hosts of one command that its answers name; of further refusals, their number."""
_PROXY_URL = f"http://{PROXY[0]}:{PROXY[1]}"
_HERE = "localhost,127.0.0.1,::1"
ENVIRONMENT = {
    name: value
    for pair in (
        ("http_proxy", _PROXY_URL),
        ("https_proxy", _PROXY_URL),
        ("all_proxy", _PROXY_URL),
        ("no_proxy", _HERE),
    )
    for name, value in (pair, (pair[0].upper(), pair[1]))
}
"""How programs find the proxy. This machine's own names do not go there: a program may serve and use them inside."""


class CommandGate:
    """The gate of one command, from its planning to its end."""

    def __init__(
        self, gates: "Gates", scope: Scope, principal: Principal, program: str, secrets: "CommandSecrets | None"
    ) -> None:
        self._gates, self._scope = gates, scope
        self.secrets = secrets
        self._reach = gates.reach(scope, principal)
        self._record = _Recorder(gates, scope, principal, program)
        opens = (lambda _host, _port: None) if secrets is None else secrets.of
        self._gate = Gate(self._reach, self._report, lambda: self._record.close(self.operation), opens)
        if secrets is not None and secrets.agent is not None:
            self._gate.connected = secrets.agent.witness.watch
        self._is_closed = False
        self._resolver: Resolver | None = None
        self._unanswered: list[Unanswered] = []
        self._refused: dict[str, str] = {}
        self._further = 0
        self._inner: list[int] = []
        self.operation: str | None = None
        """The operation that the command belongs to."""
        rules = gates.rules(scope.id)
        entries, further = rules.entries, WEB_PORTS if rules.asks else ()
        self.inner = InnerNetwork(
            # A preset may name the proxy's own port; such a host is reached through the proxy alone.
            tuple(sorted({port for entry in entries for port in entry.ports}.union(further) - {PROXY[1]})),
            tuple(dict.fromkeys(host for entry in entries if _needs_address(host := entry.host))),
            self._opened,
        )

    def shown_in(self, confinement: Confinement) -> Confinement:
        """The confinement with the network of the gate, and the files by which programs trust it."""
        if self.secrets is None:
            return replace(confinement, hosts=self.inner)
        files, emptied = self.secrets.files(), self.secrets.emptied()
        return replace(
            confinement, hosts=self.inner, files=(*confinement.files, *files), emptied=(*confinement.emptied, *emptied)
        )

    def agent_socket(self) -> "InnerSocket | None":
        """The agent of the SSH keys that the command may use, as a socket of its sandbox; None without any."""
        agent = None if self.secrets is None else self.secrets.agent
        if agent is None:
            return None
        from computer_linker.providers.network.command_secrets import AGENT
        from computer_linker.providers.sandbox.inner_socket import InnerSocket

        return InnerSocket(self._gates.state / "ssh-agents", AGENT, agent.serve)

    def warnings(self) -> list[str]:
        """A sentence for each host that was refused, with the owner's command that allows it; above a bound, the number."""
        self._report_unanswered()
        further = f"The network gate refused {self._further} further connections." if self._further else ""
        asked = ", ".join(dict.fromkeys(self._reach.asking))
        waits = f"The owner was asked about {asked}, and had not answered when the command ended." if asked else ""
        return [*self._refused.values(), *filter(None, (further, waits))]

    def close(self) -> None:
        """End its connections; called once the command has ended."""
        self._is_closed = True
        self._report_unanswered()
        for watch in self._unanswered:
            watch.close()
        self._unanswered = []
        self._gates.inner.difference_update(self._inner)
        self._gate.close()
        if self._resolver is not None:
            self._resolver.close()
            self._resolver = None

    def _opened(self, fds: list[int]) -> None:
        if self._is_closed:
            # The call was cancelled while its root was staged.
            for fd in fds:
                os.close(fd)
            return
        self._inner = fds
        self._gates.inner.update(fds)
        made = [socket.socket(fileno=fd) for fd in fds]
        self._unanswered = [Unanswered(one) for one in made if one.family == AF_PACKET]
        resolver, proxy, *ports = (one for one in made if one.family != AF_PACKET)
        self._resolver = Resolver(self._reach, self._gate.refused)
        self._resolver.listen(resolver)
        self._gate.serve(proxy, self._gate.greet)
        for listener in ports:
            self._gate.serve(listener, self._take)

    async def _take(self, client: Stream) -> None:
        assert self._resolver is not None
        address, port = client.sock.getsockname()[:2]
        await self._gate.take(client, self._resolver.name_of(address, port), port)

    def _report_unanswered(self) -> None:
        """Report what the program connected to in its own network where neither it nor the gate listens."""
        for address, port in (place for watch in self._unanswered for place in watch.taken()):
            assert self._resolver is not None
            try:
                self._reach.listed(self._resolver.name_of(address, port), port)
            except Refused as refused:
                if refused.host == "localhost":
                    refused.why += ", and the command itself serves nothing there"
                self._gate.refused(refused)

    def _report(self, passage: Passage) -> None:
        if passage.verdict == "refused":
            place = f"{passage.host}:{passage.port}" if passage.port else passage.host
            if place not in self._refused and len(self._refused) >= _MAX_WARNINGS:
                self._further += 1
            else:
                self._refused.setdefault(place, _refusal(place, passage, self._scope.id))
        self._record(passage, self.operation)


class _Recorder:
    """Puts the connections of one program into the history; above a bound only their number."""

    def __init__(self, gates: "Gates", scope: Scope, principal: Principal, program: str) -> None:
        self._gates, self._scope, self._principal, self._program = gates, scope, principal, program
        self._count = 0

    def __call__(self, passage: Passage, operation: str | None = None) -> None:
        self._count += 1
        if self._count <= _MAX_EVENTS:
            facts = facts_of(self._program, passage)
            self._gates.record(self._principal, self._scope.id, operation, facts, _error_of(passage))

    def close(self, operation: str | None) -> None:
        """Record how many were left out."""
        if self._count > _MAX_EVENTS:
            facts: dict[str, str | int | None] = {"program": self._program, "leftOut": self._count - _MAX_EVENTS}
            self._gates.record(self._principal, self._scope.id, operation, facts)
            self._count = 0


class Gates:
    """Makes gates, resolves the entries of scopes, and records connections."""

    def __init__(self, services: Services, home: Path, environ: Mapping[str, str]) -> None:
        self._services = services
        self.state = services.home
        self._home = home
        self._environ = environ
        self._presets: dict[str, tuple[float, tuple[Entry, ...]]] = {}
        self._listed: dict[str, tuple[list[str], float, Rules]] = {}
        """The rules of each scope, with the list that they were made from: a new config has new lists."""
        self._recording: set[asyncio.Task[str]] = set()
        self.inner: set[int] = set()
        """Descriptors of listeners in the networks of commands."""
        self._ports: tuple[float, frozenset[int]] = (-_KNOWN_S, frozenset())
        self._asking: Asking = services.use(Asking)
        self.own = Own(self._own_ports, self._own_hosts)

    @classmethod
    def open(cls, services: Services) -> Self:
        return cls(services, Path.home(), dict(os.environ))

    def _own_ports(self) -> frozenset[int]:
        """The ports of this service, looked up anew after a moment: a command can connect thousands of times a second."""
        if time.monotonic() - self._ports[0] >= _KNOWN_S:
            self._ports = (time.monotonic(), own_ports(self.inner))
        return self._ports[1]

    def for_command(self, scope: Scope, principal: Principal, program: str) -> CommandGate:
        """A gate for a command of a scope that lists its hosts."""
        return CommandGate(self, scope, principal, program, self._secrets_of(scope))

    def _secrets_of(self, scope: Scope) -> "CommandSecrets | None":
        """The secrets that a command of this scope may use; None without any."""
        if not scope.policy.secrets:
            return None
        from computer_linker.providers.network.command_secrets import CommandSecrets

        return CommandSecrets.of_scope(self._services, scope.id)

    def for_browser(self, scope: Scope, principal: Principal) -> Gate:
        """The proxy of a browser: for the scope's hosts, or for all."""
        record = _Recorder(self, scope, principal, "browser")
        return Gate(self.reach(scope, principal), record, partial(record.close, None))

    def reach(self, scope: Scope, principal: Principal) -> Reach:
        """What decides about the connections of a program that runs for this caller."""
        return Reach(partial(self.rules, scope.id), self.own, partial(self._asking.ask, scope.id, principal))

    def rules(self, scope_id: str) -> Rules:
        """What the scope may reach by the config of this moment."""
        scope: Scope | None = self._services.config.scope(scope_id)
        network = False if scope is None else scope.policy.network
        if isinstance(network, bool):
            return Rules(network)
        known = self._listed.get(scope_id)
        now = time.monotonic()
        if known is None or known[0] is not network or now - known[1] > _PRESETS_S:
            entries = tuple(entry for text in network if text != ASK for entry in self._entries(text))
            known = self._listed[scope_id] = (network, now, Rules(False, entries, ASK in network))
        rules = known[2]
        return replace(rules, entries=(*rules.entries, *self._asking.granted(scope_id))) if rules.asks else rules

    def record(
        self,
        principal: Principal,
        scope: str,
        operation: str | None,
        facts: Mapping[str, str | int | None],
        error: LinkError | None = None,
    ) -> None:
        """Put a connection into the history, or one that was refused or failed."""
        work: Coroutine[Any, Any, str] = self._services.note(
            "network.connect", principal, facts, scope, operation, error=error
        )
        task = asyncio.ensure_future(work)
        self._recording.add(task)
        task.add_done_callback(self._recording.discard)

    async def aclose(self) -> None:
        """Wait until what was seen is recorded."""
        if self._recording:
            await asyncio.wait(self._recording, timeout=5)

    def _entries(self, text: str) -> tuple[Entry, ...]:
        if text not in PRESETS:
            return (parse_entry(text),)
        known = self._presets.get(text)
        if known is None or time.monotonic() - known[0] > _PRESETS_S:
            writers = writers_of(self._services.config.scopes)
            entries = preset_entries(text, self._home, self._environ, trusted_by(lambda path: writer_of(path, writers)))
            known = self._presets[text] = (time.monotonic(), entries)
        return known[1]

    def _own_hosts(self) -> frozenset[str]:
        address: str | None = self._services.config.public_base_url
        return frozenset({urlsplit(address).hostname or ""} if address else ())


def facts_of(program: str, passage: Passage) -> dict[str, str | int | None]:
    """What the history keeps of a connection."""
    return {
        "program": program,
        "host": passage.host,
        "port": passage.port or None,
        "verdict": passage.verdict,
        "sentBytes": passage.sent,
        "receivedBytes": passage.received,
        "reason": passage.why or None,
        "entry": passage.entry,
        "secret": ", ".join(sorted(passage.secrets)) or None,
    }


def _error_of(passage: Passage) -> LinkError | None:
    """What ended a connection that was not let through; None for one that was."""
    if passage.verdict == "refused":
        # The history names the rule as the reason.
        rule = "hosts" if passage.why == NOT_LISTED else passage.why
        return PermissionDenied(f"The network gate refused it: {passage.why}.", rule=rule)
    return ExecutionFailed(f"The connection failed: {passage.why}.") if passage.verdict == "failed" else None


def _needs_address(host: str) -> bool:
    """Whether a listed host is an address that the program's network does not have by itself."""
    ip = address_of(host)
    return ip is not None and not ip.is_loopback


def _refusal(place: str, passage: Passage, scope: str) -> str:
    text = f"The network gate refused {place}: {passage.why}."
    if passage.entry is None:
        return text
    return f"{text} The owner can allow it: computer-linker scope allow-host {scope} {passage.entry}"

"""The hub's registry of machines: which are trusted, which are online, and which one an address refers to."""

import hmac
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from computer_linker.errors import InvalidRequest, NotFound, PermissionDenied, UnknownScope
from computer_linker.fleet.member import proof_of
from computer_linker.fleet.messages import SKEW_S, Presence, SharedScope, moment
from computer_linker.fleet.settings import Facts, HubSettings, Invited, KnownMachine

# Queries for machines by their properties: `[os=linux has=docker]`. Small and strict, so that no address is misread.

_TERM = re.compile(r"(os|arch|has|can|name|within)=([A-Za-z0-9][A-Za-z0-9._:+-]{0,63})\Z")
_NUMBER = re.compile(r"\d{1,4}(?:\.\d{1,3})?s?\Z")
_MANY = frozenset({"has", "can"})
DEFAULT_WITHIN_S = 30.0
MAX_WITHIN_S = 1800.0
ALL = "all"


@dataclass(frozen=True, slots=True)
class Query:
    """Conditions that all must hold, and the common deadline for the answers."""

    wanted: tuple[tuple[str, str], ...]
    within_s: float

    def matches(self, name: str, facts: Facts, capabilities: frozenset[str]) -> bool:
        """Whether a machine matches."""
        properties = {
            "os": [facts.os],
            "arch": [facts.arch],
            "has": facts.has,
            "can": sorted(capabilities),
            "name": [name],
        }
        return all(value in properties[key] for key, value in self.wanted)


def is_query(address: str) -> bool:
    """True for an address that is a query rather than a name."""
    return address.startswith("[")


def parse(address: str) -> Query:
    """`[all]`, or terms in brackets, each `key=value`. Raises InvalidRequest for anything else."""
    if not (address.startswith("[") and address.endswith("]") and len(address) <= 400):
        raise _unclear("A query stands in brackets: [os=linux has=docker].")
    terms = address[1:-1].split()
    if not terms:
        raise _unclear("An empty query means nothing; every machine is [all].")
    is_all = ALL in terms
    if is_all:
        terms.remove(ALL)
    within, wanted, seen = DEFAULT_WITHIN_S, [], set()
    for term in terms:
        found = _TERM.match(term)
        if found is None:
            raise _unclear(f"A query cannot have {term[:60]!r}.")
        key, value = found[1], found[2]
        if key in seen and key not in _MANY:
            raise _unclear(f"A query has {key}= once at most.")
        seen.add(key)
        if key == "within":
            within = _seconds(value)
        else:
            wanted.append((key, value.lower() if key in ("os", "arch") else value))
    if is_all == bool(wanted):
        raise _unclear("A query has conditions, or it is [all].")
    return Query(tuple(wanted), within)


def _seconds(value: str) -> float:
    seconds = float(value.removesuffix("s")) if _NUMBER.match(value) else 0
    if not 0 < seconds <= MAX_WITHIN_S:
        raise _unclear(f"within= is a number of seconds, {MAX_WITHIN_S:g} at most.")
    return seconds


def _unclear(problem: str) -> InvalidRequest:
    return InvalidRequest(problem, terms=["os=", "arch=", "has=", "can=", "name=", "within=", ALL])


State = Literal["online", "offline", "stale", "left", "unknown", "pending"]
_MAX_PENDING = 200
_MAX_PENDING_A_SEAT = 4
"""A limit, so that one machine cannot prevent all others from asking to join."""
_KEY_DIGITS = 20
"""A shorter prefix could be matched by a key generated for it."""
_MISSED = 3
"""Missed heartbeats until a machine counts as gone."""


@dataclass(slots=True)
class Machine:
    """One machine in the hub's view. `presence` is its last presence message in this run of the hub."""

    known: KnownMachine
    trusted: bool
    presence: Presence | None = None
    heard_at: float = 0.0
    """By this hub's monotonic clock."""
    scopes: list[SharedScope] = field(default_factory=list)
    sent: int = 0
    """The newest record of its history that, by its own report, the server has for this hub."""

    @property
    def capabilities(self) -> frozenset[str]:
        return frozenset(capability for scope in self.scopes for capability in scope.capabilities)


class Machines:
    """The registry. A machine is trusted by its key; its id is bound to that key, its name is only a claim."""

    def __init__(self, settings: HubSettings, own: str, store: Callable[[HubSettings], object]) -> None:
        self._settings, self._own, self._store = settings, own, store
        self.is_connected: Callable[[], bool] = lambda: True
        self.by_key = {known.fingerprint: Machine(known, trusted=True) for known in settings.machines}

    def receive(self, signer: str, presence: Presence) -> Machine:
        """Process a presence message. Raises PermissionDenied for one that must not be accepted."""
        machine = self.by_key.get(signer)
        if machine is not None and machine.trusted and machine.known.machine_id != presence.machine_id:
            raise PermissionDenied(
                "A machine calls itself another than the one that was trusted.", rule="another_machine"
            )
        if machine is not None:
            _check_order(machine, presence)
        if abs(presence.at - time.time()) > SKEW_S:
            raise PermissionDenied(
                "A machine's clock is more than a minute off, or this was said before.", rule="clock"
            )
        if machine is None or not machine.trusted:
            machine = self._register(signer, presence)
        known = machine.known
        reported = {
            "name": presence.name,
            "seat": presence.seat,
            "facts": presence.facts,
            "left": presence.going == "leaves",
        }
        machine.known = known.model_copy(update=reported | {"last_seen_at": presence.at})
        if (known.name, known.seat, known.facts, known.left) != tuple(reported.values()):
            self._save()
        machine.presence, machine.heard_at = presence, time.monotonic()
        machine.scopes, machine.sent = presence.scopes.get(self._own, []), presence.sent.get(self._own, 0)
        return machine

    def trust(self, start: str) -> Machine:
        """Trust the pending machine whose key has this prefix. Raises NotFound, or InvalidRequest when several match."""
        start = start.replace(":", "").lower()
        found = [
            m for key, m in self.by_key.items() if not m.trusted and len(start) >= _KEY_DIGITS and key.startswith(start)
        ]
        if not found:
            raise NotFound("No machine with that key has asked to join. At least 20 digits of the key are needed.")
        if len(found) > 1:
            raise InvalidRequest("Several keys begin so; give more of it.")
        taken = found[0].known.machine_id
        if any(m.trusted and m.known.machine_id == taken for m in self.by_key.values()):
            raise InvalidRequest(f"The id {taken} belongs to a machine that is trusted already; forget that one first.")
        return self._trusted(found[0])

    def forget(self, name: str) -> Machine:
        """Remove a machine, and its invitation, which would let it join again."""
        machine = self.find(name)
        gone = machine.known.fingerprint
        del self.by_key[gone]
        invited = [one for one in self._settings.invited if one.used_by != gone]
        self._settings = self._settings.model_copy(update={"invited": invited})
        self._save()
        return machine

    def invite(self, invited: Invited) -> None:
        """Store an invitation."""
        self._settings = self._settings.model_copy(update={"invited": [*self._settings.invited, invited]})
        self._save()

    @property
    def settings(self) -> HubSettings:
        return self._settings

    def state(self, machine: Machine) -> State:
        """The current state of a machine. While the hub itself is disconnected, every state is unknown."""
        if not machine.trusted:
            return "pending"
        if machine.known.left:
            return "left"
        if not self.is_connected():
            return "unknown"
        if machine.presence is None:
            return "stale"
        if machine.presence.going == "stops":
            return "offline"
        quiet_s = time.monotonic() - machine.heard_at
        return "online" if quiet_s <= machine.presence.every * _MISSED + 1 else "stale"

    def find(self, name: str) -> Machine:
        """The one machine of this id or name. Raises UnknownScope for none, InvalidRequest for several."""
        trusted = [machine for machine in self.by_key.values() if machine.trusted]
        # Both are chosen by machines: an id must not take precedence over another one's name.
        found = [machine for machine in trusted if name in (machine.known.machine_id, machine.known.name)]
        if len(found) > 1:
            ids = sorted(machine.known.machine_id for machine in found)
            raise InvalidRequest(f"Several machines are called {name[:60]!r}; use an id.", machineIds=ids)
        if not found:
            raise UnknownScope(f"No machine of this fleet is called {name[:60]!r}.")
        return found[0]

    def matching(self, query: Query) -> list[Machine]:
        """The trusted machines that match a query, by name; silent ones are included, those that left are not."""
        trusted = (machine for machine in self.by_key.values() if machine.trusted and not machine.known.left)
        found = [m for m in trusted if query.matches(m.known.name, m.known.facts, m.capabilities)]
        return sorted(found, key=lambda machine: (machine.known.name, machine.known.machine_id))

    def listing(self) -> list[dict[str, Any]]:
        """All machines, as clients see them."""
        return [self._listed(machine) for machine in self.by_key.values()]

    def _listed(self, machine: Machine) -> dict[str, Any]:
        known = machine.known
        listed: dict[str, Any] = {
            "name": known.name, "machineId": known.machine_id, "via": "fleet", "state": self.state(machine),
            "lastSeenAt": moment(known.last_seen_at), "key": known.fingerprint, **known.facts.to_wire(),
        }  # fmt: skip
        if machine.trusted:
            listed["scopes"] = [scope.to_wire() for scope in machine.scopes]
        return listed

    def _register(self, signer: str, presence: Presence) -> Machine:
        """Register an untrusted machine: its invitation makes it trusted, else it waits for the owner."""
        known = KnownMachine(
            fingerprint=signer,
            machine_id=presence.machine_id,
            seat=presence.seat,
            name=presence.name,
            facts=presence.facts,
        )
        if any(m.trusted and m.known.machine_id == presence.machine_id for m in self.by_key.values()):
            raise PermissionDenied(
                "Another key calls itself a machine that is trusted already.", rule="another_machine"
            )
        machine = Machine(known, trusted=False)
        invited = self._invitation(signer, presence)
        if invited is None:
            pending = [m for key, m in self.by_key.items() if not m.trusted and key != signer]
            of_seat = sum(m.known.seat == presence.seat for m in pending)
            if len(pending) >= _MAX_PENDING or of_seat >= _MAX_PENDING_A_SEAT:
                raise PermissionDenied("Too many machines wait to be trusted.", rule="too_many")
            self.by_key[signer] = machine
            return machine
        used = invited.model_copy(update={"used_by": signer})
        invitations = [used if one.seat == invited.seat else one for one in self._settings.invited]
        self._settings = self._settings.model_copy(update={"invited": invitations})
        return self._trusted(machine)

    def _invitation(self, signer: str, presence: Presence) -> Invited | None:
        proof = presence.proofs.get(self._own)
        for invited in self._settings.invited:
            usable = (
                invited.used_by in (None, signer) and invited.expires_at > time.time() and invited.seat == presence.seat
            )
            if proof and usable and hmac.compare_digest(proof.encode(), proof_of(invited.secret, signer).encode()):
                return invited
        return None

    def _trusted(self, machine: Machine) -> Machine:
        machine.trusted = True
        self.by_key[machine.known.fingerprint] = machine
        self._save()
        return machine

    def _save(self) -> None:
        known = [machine.known for machine in self.by_key.values() if machine.trusted]
        self._settings = self._settings.model_copy(update={"machines": known})
        self._store(self._settings)


def _check_order(machine: Machine, presence: Presence) -> None:
    """Reject a replayed presence message."""
    last = machine.presence
    seen = machine.known.last_seen_at or 0.0
    is_later = (
        presence.number > last.number if last is not None and last.epoch == presence.epoch else presence.at > seen
    )
    if not is_later:
        raise PermissionDenied("This was said before.", rule="replayed")

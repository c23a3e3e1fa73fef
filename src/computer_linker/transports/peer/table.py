"""The registry of paired computers: identity, pinned certificate, and grants."""

import json
import re
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from computer_linker.config.store import write_whole
from computer_linker.errors import InvalidRequest, NotFound, PermissionDenied
from computer_linker.policy.grants import Places
from computer_linker.services import Services
from computer_linker.transports.peer.identity import fingerprint_of

_FILE = "peers.json"
_MACHINE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")


@dataclass(frozen=True, slots=True)
class Peer:
    """One paired computer. `address` is empty for one that only calls us."""

    name: str
    machine_id: str
    cert_pem: str
    address: str = ""
    grants: tuple[str, ...] = ()
    """What it may use here: scope ids, or `scope:capability`. Nothing by default."""
    places: Places = field(default_factory=dict)
    """Where these scopes were when the owner gave them; of older pairings nothing."""
    manifest: dict[str, Any] = field(default_factory=dict)
    """Its manifest when it was paired (see offer.py); anything more is refused until the owner accepts it."""
    refused: dict[str, Any] = field(default_factory=dict)
    """Its last manifest that was refused, which `accept` would pin."""

    @property
    def fingerprint(self) -> str:
        return fingerprint_of(self.cert_pem)


class PeerTable:
    """Peers by name; the file is rewritten after each change."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self.peers: dict[str, Peer] = {}
        path = home / _FILE
        if path.exists():
            for item in json.loads(path.read_text("utf-8"))["peers"]:
                peer = Peer(**{**item, "grants": tuple(item["grants"]), "manifest": item.get("manifest") or {}})
                self.peers[peer.name] = peer

    @classmethod
    def open(cls, services: Services) -> Self:
        return cls(services.home)

    def find(self, name: str) -> Peer:
        """The peer of this name or machine id."""
        found = [peer for peer in self.peers.values() if name in (peer.name, peer.machine_id)]
        if len(found) > 1:
            # A machine chooses its own id: it must not take precedence over another one's name.
            ids = sorted(peer.machine_id for peer in found)
            raise InvalidRequest(f"Several computers are called {name[:60]!r}; use an id.", machineIds=ids)
        if found:
            return found[0]
        raise NotFound(f"No computer called {name[:60]!r} is paired with this one.", known=sorted(self.peers))

    def by_fingerprint(self, fingerprint: str) -> Peer | None:
        """The peer whose certificate this is."""
        return next((peer for peer in self.peers.values() if peer.fingerprint == fingerprint), None)

    def add(self, peer: Peer, *, sets_grants: bool = False, name: str | None = None) -> Peer:
        """Store a peer. A machine paired again replaces its old entry and keeps its name here; a taken name gets a number.

        With `gives`, the pairing sets what the machine may use here, and its earlier grants end. A pairing in the
        other direction sets what it grants us instead, and leaves this unchanged.

        Raises PermissionDenied for another key under the id of a paired machine: it would replace that machine.
        """
        known = None
        for old in list(self.peers.values()):
            if old.machine_id == peer.machine_id:
                if old.fingerprint != peer.fingerprint:
                    raise PermissionDenied(
                        f"Another key calls itself {old.name}, which is paired already. If that machine has a new key: "
                        f"computer-linker peer remove {old.name}",
                        rule="another_machine",
                    )
                del self.peers[old.name]
                known = old.name
                peer = _renewed(peer, old) if sets_grants else _kept(peer, old)
        ids = {other.machine_id for other in self.peers.values()}
        if peer.machine_id in self.peers:
            # The two could no longer be told apart.
            raise PermissionDenied(
                f"A machine calls itself by the name of another one, {peer.machine_id}.", rule="another_machine"
            )
        wanted, number = name or known or peer.name, 2
        free = wanted
        while free in self.peers or free in ids:
            free, number = f"{wanted}-{number}", number + 1
        kept = replace(peer, name=free)
        self.peers[free] = kept
        self._store()
        return kept

    def paired(self, fingerprint: str) -> Peer:
        """The peer of this key as it is now. Raises PermissionDenied for one that is not paired, or not any more."""
        found = self.by_fingerprint(fingerprint)
        if found is None:
            raise PermissionDenied("That machine is not paired with this one.", rule="unpaired")
        return found

    def change(self, peer: Peer) -> Peer:
        """Store changed facts about a paired machine. Raises PermissionDenied for one that was removed meanwhile."""
        known = self.peers.get(peer.name)
        if known is None or known.machine_id != peer.machine_id:
            raise PermissionDenied("That machine is not paired with this one.", rule="unpaired")
        if known != peer:
            self.peers[peer.name] = peer
            self._store()
        return peer

    def accept(self, name: str) -> Peer:
        """Pin the manifest that a machine was last refused for. Raises NotFound when there is nothing to accept."""
        peer = self.waiting(name)
        return self.change(replace(peer, manifest=peer.refused, refused={}))

    def waiting(self, name: str) -> Peer:
        """A machine that was refused for its manifest. Raises NotFound when it was not."""
        peer = self.find(name)
        if not peer.refused:
            raise NotFound(f"{peer.name} was not refused for anything it said of itself.")
        return peer

    def remove(self, name: str) -> Peer:
        """Remove a peer; its key is refused from now on."""
        peer = self.find(name)
        del self.peers[peer.name]
        self._store()
        return peer

    def _store(self) -> None:
        value = {"schemaVersion": 1, "peers": [asdict(peer) for peer in self.peers.values()]}
        write_whole(self._home, _FILE, json.dumps(value, indent=1).encode())


def is_machine_id(value: Any) -> bool:
    """Whether this is a valid machine id: one plain word, usable in the history."""
    return type(value) is str and _MACHINE_ID.fullmatch(value) is not None


def _kept(peer: Peer, old: Peer) -> Peer:
    """The new entry of a machine that we joined: what it may use here is not part of this pairing."""
    return peer if peer.grants else replace(peer, grants=old.grants, places=old.places)


def _renewed(peer: Peer, old: Peer) -> Peer:
    """The new entry of a machine that joined us again: its address and what it grants us are not part of this pairing."""
    scopes = {"scopes": old.manifest.get("scopes", {})} if peer.manifest else {}
    return replace(peer, address=peer.address or old.address, manifest={**peer.manifest, **scopes})

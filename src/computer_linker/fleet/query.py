"""Queries for machines by their properties: `[os=linux has=docker]`. Small and strict, so that no address is misread."""

import re
from dataclasses import dataclass

from computer_linker.errors import InvalidRequest
from computer_linker.fleet.settings import Facts

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

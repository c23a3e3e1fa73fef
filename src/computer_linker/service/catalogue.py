"""The operation catalogue as clients see it: schemas and signatures, each built once, and what can be used here."""

import asyncio
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Self

from pydantic_core import from_json, to_json

from computer_linker import __version__
from computer_linker.computer.base import Computer
from computer_linker.computer.manifest import FacetName, FacetState
from computer_linker.errors import InvalidRequest
from computer_linker.model.capability import Capability
from computer_linker.model.envelope import PreparedList
from computer_linker.model.principal import Principal
from computer_linker.model.scope import Scope, ScopeKind
from computer_linker.policy.engine import holds
from computer_linker.registry.catalog import OLDER, Catalog, similar
from computer_linker.registry.operation import Operation
from computer_linker.registry.schema import parameter_schemas, result_schema, signature
from computer_linker.service.programs import InstalledPrograms, Tool, missing_programs
from computer_linker.services import Services
from computer_linker.transports.mcp.prepared import stamp, write_prepared

FILE_NAME = f"catalogue-{__version__}.json"
"""What a service built, for the next one of the same source: building takes a third of a second of the processor."""
_MOST_KEPT = 64


@dataclass(frozen=True, slots=True)
class Facts:
    """What of an operation decides whether a caller can use it, and its signature."""

    name: str
    names: tuple[str, ...]
    needs: frozenset[Capability]
    needs_any: frozenset[Capability]
    on: ScopeKind
    facets: tuple[FacetName, ...]
    is_checked: bool
    """True when its own `unavailable` must be asked."""
    signature: str

    @property
    def noun(self) -> str:
        return self.name.partition(".")[0]


class Catalogue:
    """Describes operations."""

    def __init__(self, catalog: Catalog, computer: Computer, programs: InstalledPrograms, home: Path) -> None:
        self._catalog = catalog
        self._computer = computer
        self._programs = programs
        self._home = home
        self._loading = asyncio.Lock()
        self._facts: Mapping[str, Facts] | None = None
        self._kept: dict[str, str] = {}
        """The descriptions that were read, as JSON."""
        self._described: dict[str, dict[str, Any]] = {}
        self._lists: dict[tuple[str, ...], PreparedList] = {}
        """The lists that were asked for, with their JSON."""
        self._seen: tuple[object, ...] = ()
        self._states: dict[str, FacetState] = {}
        self._missing: dict[str, str] = {}
        self._absent: dict[str, str | None] = {}
        self._allowed: dict[tuple[str, bool, frozenset[Capability]], list[str]] = {}

    @classmethod
    def open(cls, services: Services) -> Self:
        parts = services.use(Catalog), services.use(Computer), services.use(InstalledPrograms)
        return cls(*parts, services.home)

    async def warm(self) -> None:
        """Build everything ahead of the first question, and keep it for the next start."""
        await self.load()
        if not self._kept:
            await self.described(self._known)
            await asyncio.to_thread(self._keep)

    async def load(self) -> None:
        """Read what an earlier service kept, or import every operation, in a thread."""
        if self._facts is None:
            async with self._loading:
                if self._facts is None:
                    self._facts = await asyncio.to_thread(self._load)

    def _load(self) -> Mapping[str, Facts]:
        kept = _kept(self._home)
        if kept is None:
            return {name: _facts(op) for name, op in self._catalog.operations.items()}
        self._kept = {name: row.pop("description") for name, row in kept.items()}
        return {name: _facts_kept(row) for name, row in kept.items()}

    def _keep(self) -> None:
        rows = {
            name: {**asdict(facts), "description": to_json(self._described[name]).decode()}
            for name, facts in self._known.items()
        }
        write_prepared(self._home, to_json({"stamp": stamp(), "operations": rows}), FILE_NAME)

    @property
    def _known(self) -> Mapping[str, Facts]:
        if self._facts is None:
            raise RuntimeError("the catalogue is used before it is loaded")
        return self._facts

    async def described(self, names: Collection[str]) -> list[dict[str, Any]]:
        """What a client needs to know of each, so that it hardcodes nothing."""
        key = tuple(names)
        if key not in self._lists:
            made = await asyncio.to_thread(self._describe, key)
            if len(self._lists) >= _MOST_KEPT:
                self._lists.clear()
            self._lists[key] = made
        return self._lists[key]

    def _describe(self, names: tuple[str, ...]) -> PreparedList:
        for name in names:
            if name not in self._described:
                kept = self._kept.get(name)
                self._described[name] = from_json(kept) if kept else describe(self._catalog.operations[name])
        return PreparedList([self._described[name] for name in names])

    def signatures(self, names: Iterable[str]) -> dict[str, list[str]]:
        """The signatures by noun."""
        nouns: dict[str, list[str]] = {}
        for name in names:
            facts = self._known[name]
            nouns.setdefault(facts.noun, []).append(facts.signature)
        return nouns

    def allowed(self, scope: Scope, principal: Principal) -> list[str]:
        """The operations this caller can call in this scope, on this machine."""
        self._look()
        rights = frozenset(right for right in scope.granted if holds(principal, scope, right))
        key = (scope.type, bool(scope.roots), rights)
        if key not in self._allowed:
            if len(self._allowed) >= _MOST_KEPT:
                self._allowed.clear()
            self._allowed[key] = [
                facts.name
                for facts in self._known.values()
                if scope.serves(facts.on)
                and facts.needs <= rights
                and (not facts.needs_any or facts.needs_any & rights)
                and self._why_absent(facts) is None
            ]
        return self._allowed[key]

    def programs(self) -> dict[str, dict[str, bool]]:
        """The programs that are here, by name alone: their paths and versions take longer to find."""
        return {name: {"available": True} for name in self._programs.names()}

    async def tools(self, scopes: Sequence[Scope]) -> dict[str, Tool]:
        """Every program with path and version."""
        return await asyncio.to_thread(self._programs.tools, scopes)

    def usable(self) -> list[str]:
        """The operations that this machine can run."""
        self._look()
        return [name for name, facts in self._known.items() if self._why_absent(facts) is None]

    def absent(self) -> dict[str, dict[str, Any]]:
        """The others, with the reason."""
        self._look()
        reasons = ((name, self._why_absent(facts)) for name, facts in self._known.items())
        return {name: {"available": False, "reason": reason} for name, reason in reasons if reason is not None}

    def _look(self) -> None:
        """Forget what depends on programs and facets, when these are others than before."""
        states = self._computer.capabilities().facets
        programs = self._programs.names()
        seen = (self._programs.known_until, programs, *((state.state, state.reason) for state in states.values()))
        if seen != self._seen:
            self._seen, self._states, self._missing = seen, states, missing_programs(programs)
            self._absent.clear()
            self._allowed.clear()

    def _why_absent(self, facts: Facts) -> str | None:
        """Why an operation cannot be used on this machine, with the remedy; None when it can."""
        if facts.name not in self._absent:
            self._absent[facts.name] = self._missing.get(facts.noun) or self._lacking(facts)
        return self._absent[facts.name]

    def _lacking(self, facts: Facts) -> str | None:
        lacking = (self._states[facet] for facet in facts.facets if self._states[facet].state != "present")
        first = next(lacking, None)
        if first is not None:
            return f"{first.reason} {first.remedy}".strip()
        check = self._catalog.operations[facts.name].unavailable if facts.is_checked else None
        return None if check is None else check()

    def matching(self, patterns: Iterable[str]) -> list[str]:
        """The operations of these names, aliases or patterns such as `git.*`. Raises InvalidRequest for one that fits none."""
        older = {name: was.op for name, was in OLDER.items() if was.op in self._known}
        by_name = older | {name: facts.name for facts in self._known.values() for name in facts.names}
        found: dict[str, None] = {}
        for pattern in patterns:
            fitting = [op for name, op in by_name.items() if fnmatchcase(name, pattern)]
            if not fitting:
                is_name = re.fullmatch(r"[\w.*?-]{1,80}", pattern, re.ASCII) is not None
                raise InvalidRequest(
                    f"There is no operation {pattern}." if is_name else "There is no operation of that name.",
                    field="operations",
                    similar=similar(pattern, by_name),
                )
            found.update(dict.fromkeys(fitting))
        return list(found)


def is_kept(home: Path) -> bool:
    """True when an earlier service kept what it built."""
    return (home / FILE_NAME).exists()


def _kept(home: Path) -> dict[str, Any] | None:
    """What an earlier service of the same source kept; None without that."""
    try:
        kept = from_json((home / FILE_NAME).read_bytes())
        return kept["operations"] if kept["stamp"] == stamp() else None
    except (OSError, ValueError, LookupError, TypeError):
        return None


def _facts(op: Operation) -> Facts:
    return Facts(
        op.name, (op.name, *op.aliases), op.needs, op.needs_any, op.on, op.facets, op.unavailable is not None,
        signature(op),
    )  # fmt: skip


def _facts_kept(row: dict[str, Any]) -> Facts:
    rights = {name: frozenset(map(Capability, row[name])) for name in ("needs", "needs_any")}
    return Facts(**{**row, **rights, "names": tuple(row["names"]), "facets": tuple(row["facets"])})


def describe(op: Operation) -> dict[str, Any]:
    """Describe one operation for clients."""
    parameters = parameter_schemas(op)
    return {
        "name": op.name,
        "signature": signature(op),
        "summary": op.summary,
        "effect": op.effect.value,
        "needs": sorted(op.needs),
        "needsAny": sorted(op.needs_any),
        "scopeType": op.on,
        "boundary": op.boundary,
        "aliases": list(op.aliases),
        "target": parameters.properties.get("target"),
        "input": parameters.properties.get("input"),
        "options": parameters.properties.get("options"),
        "required": parameters.required,
        "result": result_schema(op),
        "example": {"title": op.examples[0].title, **op.examples[0].request},
    }

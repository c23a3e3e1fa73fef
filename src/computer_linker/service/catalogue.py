"""The operation catalogue as clients see it: schemas and signatures, each built once, and what can be used here."""

import asyncio
import logging
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fnmatch import translate
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

log = logging.getLogger(__name__)
FILE_NAME = f"catalogue-{__version__}.json"
"""What a service built, for the next one of the same source: building takes a third of a second of the processor.

The first line has the stamp of the source and the facts of every operation, each further one the description of one of them.
"""
_MOST_KEPT = 64
_MOST_LISTS = 8
"""The lists of descriptions that are kept with their JSON; one of all operations has most of a megabyte."""
_COMPARED_AFTER_S = 1.0
"""Delay: comparing the source takes longer than answering from what was kept."""


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
    needs_policy: str | None = None

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
        self._loading, self._describing, self._asking = asyncio.Lock(), asyncio.Lock(), asyncio.Lock()
        self._facts: Mapping[str, Facts] | None = None
        self._stamp: str | None = None
        """Of the source of what was read; None when it was built here."""
        self._comparing: asyncio.Task[None] | None = None
        self._described: dict[str, dict[str, Any]] = {}
        self._lists: dict[tuple[str, ...], PreparedList] = {}
        """The lists that were asked for, with their JSON."""
        self._seen: tuple[object, ...] = ()
        self._states: dict[str, FacetState] = {}
        self._missing: dict[str, str] = {}
        self._absent: dict[str, str | None] = {}
        self._allowed: dict[tuple[str, bool, frozenset[Capability], frozenset[str]], list[str]] = {}

    @classmethod
    def open(cls, services: Services) -> Self:
        parts = services.use(Catalog), services.use(Computer), services.use(InstalledPrograms)
        return cls(*parts, services.home)

    async def warm(self) -> None:
        """Build everything ahead of the first question, and keep it for the next start."""
        await self.load()
        if self._stamp is None:
            await self.described(self._known)
            await asyncio.to_thread(self._keep)

    async def load(self) -> None:
        """Read what an earlier service of this version kept, or import every operation, in a thread."""
        if self._facts is None:
            async with self._loading:
                if self._facts is None:
                    self._facts = await asyncio.to_thread(self._load)
                    if self._stamp is not None:
                        self._comparing = asyncio.create_task(self._compare())

    async def _compare(self) -> None:
        """Build anew what was read, when a file of the source changed since."""
        await asyncio.sleep(_COMPARED_AFTER_S)
        if await asyncio.to_thread(stamp) == self._stamp:
            return
        self._facts, self._stamp = await asyncio.to_thread(self._build), None
        self._described, self._lists, self._seen = {}, {}, ()
        await self.warm()

    async def aclose(self) -> None:
        if self._comparing is not None:
            self._comparing.cancel()
            await asyncio.wait([self._comparing])

    def _load(self) -> Mapping[str, Facts]:
        try:
            with (self._home / FILE_NAME).open("rb") as file:
                kept = from_json(file.readline())
            facts = {row["name"]: _facts_kept(row) for row in kept["facts"]}
            self._stamp = str(kept["stamp"])
        except (OSError, ValueError, LookupError, TypeError):
            return self._build()
        return facts

    def _build(self) -> Mapping[str, Facts]:
        return {name: _facts(op) for name, op in self._catalog.operations.items()}

    def _keep(self) -> None:
        head = {"stamp": stamp(), "facts": [asdict(facts) for facts in self._known.values()]}
        rows = [to_json(head), *(to_json(self._described[name]) for name in self._known)]
        try:
            write_prepared(self._home, b"\n".join(rows), FILE_NAME)
        except OSError as error:
            log.warning("the catalogue for the next start was not written: %s", error.strerror)

    @property
    def is_loaded(self) -> bool:
        return self._facts is not None

    @property
    def _known(self) -> Mapping[str, Facts]:
        if self._facts is None:
            raise RuntimeError("the catalogue is used before it is loaded")
        return self._facts

    async def described(self, names: Collection[str]) -> list[dict[str, Any]]:
        """What a client needs to know of each, so that it hardcodes nothing."""
        key = tuple(names)
        # Many who ask at once wait for one.
        async with self._describing:
            if key not in self._lists:
                if len(self._lists) >= _MOST_LISTS:
                    self._lists.clear()
                self._lists[key] = await asyncio.to_thread(self._describe, key)
            return self._lists[key]

    def _describe(self, names: tuple[str, ...]) -> PreparedList:
        new = [name for name in names if name not in self._described]
        kept = self._descriptions() if new and self._stamp is not None else {}
        for name in new:
            self._described[name] = from_json(kept[name]) if name in kept else describe(self._catalog.operations[name])
        return PreparedList([self._described[name] for name in names])

    def _descriptions(self) -> dict[str, bytes]:
        """The descriptions that were kept, as JSON; none when the file is another one than was read before."""
        try:
            head, *rows = (self._home / FILE_NAME).read_bytes().split(b"\n")
        except OSError:
            return {}
        is_same = head.startswith(_begun(self._stamp)) and len(rows) == len(self._known)
        return dict(zip(self._known, rows, strict=True)) if is_same else {}

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
        withheld = self._withheld([scope])
        key = (scope.type, bool(scope.roots), rights, withheld)
        if key not in self._allowed:
            if len(self._allowed) >= _MOST_KEPT:
                self._allowed.clear()
            self._allowed[key] = [
                facts.name
                for facts in self._known.values()
                if scope.serves(facts.on)
                and facts.name not in withheld
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
        async with self._asking:
            return await asyncio.to_thread(self._programs.tools, scopes)

    def _withheld(self, scopes: Iterable[Scope]) -> frozenset[str]:
        """The operations that the policy of none of these scopes lets run."""
        policies = [scope.policy for scope in scopes]
        needing = ((facts.name, facts.needs_policy) for facts in self._known.values() if facts.needs_policy)
        return frozenset(name for name, field in needing if not any(getattr(policy, field) for policy in policies))

    def usable(self, scopes: Iterable[Scope]) -> list[str]:
        """The operations that this machine can run, but those that the policy of none of these scopes lets run."""
        self._look()
        withheld = self._withheld(scopes)
        return [name for name, facts in self._known.items() if name not in withheld and self._why_absent(facts) is None]

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
        op = self._catalog.operations.get(facts.name) if facts.is_checked else None
        return None if op is None or op.unavailable is None else op.unavailable()

    def matching(self, patterns: Iterable[str]) -> list[str]:
        """The operations of these names, aliases or patterns such as `git.*`. Raises InvalidRequest for one that fits none."""
        older = {name: was.op for name, was in OLDER.items() if was.op in self._known}
        by_name = older | {name: facts.name for facts in self._known.values() for name in facts.names}
        found: dict[str, None] = {}
        for pattern in patterns:
            # Not fnmatchcase, which keeps tens of thousands of compiled patterns.
            fits = re.compile(translate(pattern)).match
            fitting = [op for name, op in by_name.items() if fits(name)]
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


def _begun(made_of: str | None) -> bytes:
    """How the file of this source begins."""
    return to_json({"stamp": made_of})[:-1]


def _facts(op: Operation) -> Facts:
    return Facts(
        op.name, (op.name, *op.aliases), op.needs, op.needs_any, op.on, op.facets, op.unavailable is not None,
        signature(op), op.needs_policy,
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

"""The operation catalogue as clients see it: schemas and signatures, each built once, and what can be used here."""

import asyncio
import re
import time
from collections.abc import Collection, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any, Self

from pydantic_core import to_json

from computer_linker.computer.base import Computer
from computer_linker.errors import InvalidRequest
from computer_linker.model.envelope import PreparedList
from computer_linker.model.scope import Scope
from computer_linker.registry.catalog import Catalog, similar
from computer_linker.registry.operation import Operation
from computer_linker.registry.schema import parameter_schemas, result_schema, signature
from computer_linker.service.programs import Tool, missing_programs, present_programs, tool_readiness
from computer_linker.services import Services

PROGRAMS_KNOWN_S = 5.0
"""How long the search for programs is trusted: a person who installs one calls again later than that."""


class Catalogue:
    """Describes operations. A schema takes milliseconds to build, so each is built once, with turns for other calls between."""

    def __init__(self, catalog: Catalog, computer: Computer) -> None:
        self._catalog = catalog
        self._computer = computer
        self._described: dict[str, dict[str, Any]] = {}
        self._lists: dict[tuple[str, ...], PreparedList] = {}
        """The list that was asked for last, with its JSON."""
        self._signatures: dict[str, str] = {}
        self._found: list[str] = []
        self._missing: dict[str, str] = {}
        self._known_until = 0.0
        self._tools: tuple[Sequence[Scope], float, dict[str, Tool]] | None = None
        self._absent: dict[str, str | None] = {}
        """Why each cannot be used, as long as the search for programs is trusted: some look for a package on the path."""
        self._is_loaded = False

    @classmethod
    def open(cls, services: Services) -> Self:
        return cls(services.use(Catalog), services.use(Computer))

    async def warm(self) -> None:
        """Build everything ahead of the first question."""
        await self.load()
        await self.described(self._catalog.operations.values())
        for op in self._catalog.operations.values():
            self.signature(op)

    async def load(self) -> None:
        """Import every operation, in a thread where that is still to be done."""
        if not self._is_loaded:
            await asyncio.to_thread(len, self._catalog.operations)
            self._is_loaded = True

    async def described(self, operations: Collection[Operation]) -> list[dict[str, Any]]:
        """What a client needs to know of each, so that it hardcodes nothing."""
        for op in operations:
            if op.name not in self._described:
                self._described[op.name] = describe(op)
                await asyncio.sleep(0)
        names = tuple(op.name for op in operations)
        if names not in self._lists:
            found = [self._described[name] for name in names]
            self._lists.clear()
            self._lists[names] = PreparedList(found, to_json(found))
        return self._lists[names]

    def signature(self, op: Operation) -> str:
        """The operation's one-line signature."""
        if op.name not in self._signatures:
            self._signatures[op.name] = signature(op)
        return self._signatures[op.name]

    def signatures(self, operations: Iterable[Operation]) -> dict[str, list[str]]:
        """The signatures by noun."""
        nouns: dict[str, list[str]] = {}
        for op in operations:
            nouns.setdefault(op.noun, []).append(self.signature(op))
        return nouns

    def why_absent(self, op: Operation) -> str | None:
        """Why an operation cannot be used on this machine, with the remedy; None when it can."""
        self._look()
        if op.name not in self._absent:
            self._absent[op.name] = self._missing.get(op.noun) or op.why_absent(self._computer)
        return self._absent[op.name]

    def programs(self) -> dict[str, dict[str, bool]]:
        """The programs that are here, by name alone: their paths and versions take longer to find."""
        self._look()
        return {name: {"available": True} for name in self._found}

    async def tools(self, scopes: Sequence[Scope]) -> dict[str, Tool]:
        """Every program with path and version, as a look some seconds ago found them: each look is hundreds of stats."""
        known = self._tools
        if known is None or known[0] is not scopes or time.monotonic() > known[1]:
            found = await asyncio.to_thread(tool_readiness, scopes)
            known = self._tools = (scopes, time.monotonic() + PROGRAMS_KNOWN_S, found)
        return known[2]

    def usable(self) -> list[Operation]:
        """The operations that this machine can run."""
        return [op for op in self._catalog.operations.values() if self.why_absent(op) is None]

    def absent(self) -> dict[str, dict[str, Any]]:
        """The others, with the reason."""
        reasons = ((op.name, self.why_absent(op)) for op in self._catalog.operations.values())
        return {name: {"available": False, "reason": reason} for name, reason in reasons if reason is not None}

    def _look(self) -> None:
        """Search for the programs again, when the last search is too long ago."""
        now = time.monotonic()
        if now > self._known_until:
            self._found = present_programs()
            self._missing, self._known_until = missing_programs(self._found), now + PROGRAMS_KNOWN_S
            self._absent.clear()

    def matching(self, patterns: Iterable[str]) -> list[Operation]:
        """The operations of these names, aliases or patterns such as `git.*`. Raises InvalidRequest for one that fits none."""
        found: dict[str, Operation] = {}
        for pattern in patterns:
            fitting = [op for name, op in self._catalog.by_name.items() if fnmatchcase(name, pattern)]
            if not fitting:
                is_name = re.fullmatch(r"[\w.*?-]{1,80}", pattern, re.ASCII) is not None
                raise InvalidRequest(
                    f"There is no operation {pattern}." if is_name else "There is no operation of that name.",
                    field="operations",
                    similar=similar(pattern, self._catalog.by_name),
                )
            found.update((op.name, op) for op in fitting)
        return list(found.values())


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

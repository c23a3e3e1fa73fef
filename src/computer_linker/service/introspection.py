"""The two read-only tools: get_computer_info and get_operation_history."""

import asyncio
import time
from typing import TYPE_CHECKING, Annotated, Any, Protocol

from anyio import to_thread
from pydantic import Field

from computer_linker.audit.masks import looks_secret
from computer_linker.audit.store import AuditStore
from computer_linker.errors import PermissionDenied, UnknownScope
from computer_linker.model.base import Model
from computer_linker.model.capability import Capability
from computer_linker.model.envelope import Reply
from computer_linker.model.info import INFO_PARTS, InfoPart
from computer_linker.model.principal import Principal
from computer_linker.policy.engine import holds, sees_scope
from computer_linker.registry.validation import explain_validation
from computer_linker.service.app import App
from computer_linker.service.catalogue import Catalogue
from computer_linker.service.client_setup import connection_profile
from computer_linker.service.doctor import diagnosis
from computer_linker.service.fleet import FleetManager
from computer_linker.service.info import computer_info
from computer_linker.service.known_findings import KnownFindings
from computer_linker.service.lifetime import this_user
from computer_linker.service.listeners import listeners
from computer_linker.service.routing import ComputerRouter
from computer_linker.service.tunnels import TunnelManager

if TYPE_CHECKING:
    from computer_linker.audit.query import Visible

_TUNNELS_KNOWN_S = 5.0
_PARTS_AFTER_S = 0.5
"""Delay: what a client calls first has priority over parts that few clients ask for."""


class InfoRequest(Model):
    include: Annotated[list[InfoPart], Field(max_length=2 * len(INFO_PARTS))] | None = None
    operations: Annotated[list[Annotated[str, Field(min_length=1, max_length=100)]], Field(max_length=50)] | None = None


_ONE_PART: dict[str, InfoRequest] = {part: InfoRequest.model_construct(include=[part]) for part in INFO_PARTS}


_INFO = "get_computer_info"
_REHEARSING = Principal(id="startup", proof="local_user", session="", connection="")


class HistoryRequest(Model):
    view: str = "last"
    scope: str | None = None
    limit: Annotated[int, Field(ge=1, le=500)] = 50
    query: Annotated[str, Field(max_length=1000)] | None = None
    cursor: Annotated[str, Field(max_length=400)] | None = None


class Listening(Protocol):
    """Where the service can be reached over HTTP."""

    local_url: str | None


class ServiceIntrospection:
    """Answers from the live config, the catalogue and the history."""

    def __init__(self, app: App) -> None:
        self._app = app
        self.http: Listening | None = None
        self.router: ComputerRouter | None = None
        self.tunnels: TunnelManager | None = None
        self._found_tunnels: list[str] = []
        self._tunnels_known_until = 0.0
        self.rehearsed = asyncio.Event()

    async def computer_info(self, arguments: dict[str, Any], principal: Principal) -> Reply:
        async def work() -> dict[str, Any]:
            request = _asked(arguments)
            answer = await self._answer(request, principal)
            is_owner = principal.grants is None
            if not is_owner:
                self._hide_home(answer)
            elif request.include is not None:
                await self._add_owner_facts(answer)
            if self.router is not None and "scopes" in answer and is_owner:
                answer["computers"] = self.router.computers()
            return answer

        return await self._app.dispatcher.introspect(_INFO, principal, work)

    async def rehearse(self) -> None:
        """Do ahead what the first call would have to: look at programs, folders and facets, and build what is built once."""
        await self._answer(InfoRequest(), _REHEARSING)
        # The history's search for secrets builds its table with the first long name.
        looks_secret(_INFO)
        self.rehearsed.set()
        # The parts that few ask for: all descriptions, what listens, and last versions, which programs have to be asked for.
        await asyncio.sleep(_PARTS_AFTER_S)
        for part in ("operations", "exposure", "tools"):
            await self._add_owner_facts(await self._answer(_ONE_PART[part], _REHEARSING))

    async def _add_owner_facts(self, answer: dict[str, Any]) -> None:
        """Add what concerns the owner's own clients alone: the user, the state folder, everything that listens, and tunnels."""
        if "platform" in answer:
            answer["platform"]["user"] = this_user().to_wire()
        if "service" in answer:
            answer["service"]["stateFolder"] = str(self._app.home)
        if "exposure" in answer:
            exposure = answer["exposure"]
            exposure["listeners"] = [one.to_wire() for one in listeners(self._app.services, self._app.config)]
            found = await asyncio.to_thread(self._app.services.use(KnownFindings).security, self._app.config)
            exposure["warnings"] = [finding.message for finding in found]
            exposure["tunnelTools"] = await self._tunnel_tools()
            if self.tunnels is not None:
                tunnel = self.tunnels.shown()
                exposure["tunnel"] = None if tunnel is None else tunnel.to_wire()

    async def _tunnel_tools(self) -> list[str]:
        """The tunnels that can be opened here, as a look some seconds ago found their programs."""
        if time.monotonic() > self._tunnels_known_until:
            tunnels = self.tunnels or self._app.services.use(TunnelManager)
            found = await to_thread.run_sync(tunnels.report)
            self._found_tunnels = [one.name for one in found.providers if one.available]
            self._tunnels_known_until = time.monotonic() + _TUNNELS_KNOWN_S
        return self._found_tunnels

    def _hide_home(self, answer: dict[str, Any]) -> None:
        """Where the state folder is does not concern a client with grants of its own."""
        if "status" in answer:
            reasons = [
                reason.replace(str(self._app.home), "(hidden)") for reason in answer["status"]["blockingReasons"]
            ]
            answer["status"] = answer["status"] | {"blockingReasons": reasons}

    async def diagnostics(self, principal: Principal) -> dict[str, Any]:
        """What the older capabilities answer has beyond get_computer_info, for the owner at this computer."""
        if principal.grants is not None or principal.is_remote:
            return {}
        config, home = self._app.config, self._app.home
        found = await to_thread.run_sync(diagnosis, config, home)
        tunnels = self.tunnels or self._app.services.use(TunnelManager)
        url = self.http.local_url if self.http else None
        return {
            "profile": connection_profile(config, home, url, running=True).to_wire(),
            "configDiagnostics": [finding.to_wire() for finding in found.config],
            "securityFindings": [finding.to_wire() for finding in found.security],
            "releaseReadiness": found.release_readiness.to_wire(),
            "tunnelDiagnostics": tunnels.report().to_wire(),
        }

    async def _answer(self, request: InfoRequest, principal: Principal) -> dict[str, Any]:
        if request.operations is None:
            named: dict[str, Any] = {}
        else:
            catalogue = self._app.services.use(Catalogue)
            await catalogue.load()
            named = {"operations": await catalogue.described(catalogue.matching(request.operations))}
            if request.include is None:
                return named
        url = self.http.local_url if self.http else None
        return await computer_info(self._app, principal, request.include, url) | named

    async def operation_history(self, arguments: dict[str, Any], principal: Principal) -> Reply:
        async def work() -> dict[str, Any]:
            with explain_validation("arguments"):
                request = HistoryRequest.from_wire(arguments)
            return await self._history(request, principal)

        return await self._app.dispatcher.introspect("get_operation_history", principal, work)

    async def _history(self, request: HistoryRequest, principal: Principal) -> dict[str, Any]:
        from computer_linker.audit.views import answer
        from computer_linker.registry.catalog import needs_of

        fleet = self._app.services.peek(FleetManager)
        if _is_remote(request.scope) and fleet is not None and fleet.is_hub and principal.grants is None:
            if not principal.is_owner:
                raise PermissionDenied(
                    "What other machines did is for the owner: `computer-linker history` on the hub.", rule="owner"
                )
            return await fleet.history(str(request.scope), request.view, request.limit, request.query, request.cursor)
        if _is_remote(request.scope):
            raise UnknownScope(
                "Only a hub answers for other machines here. A paired computer keeps its own history: "
                "run `computer-linker history` there."
            )
        if request.scope is not None:
            scope = self._app.config.scope(request.scope)
            if scope is None or not sees_scope(principal, request.scope):
                raise UnknownScope(f"There is no scope {request.scope[:80]!r}.")
        return await answer(
            self._app.services.use(AuditStore),
            view=request.view,
            visible=None if principal.is_owner else self._visible(request.scope, principal),
            scope=request.scope,
            limit=request.limit,
            query=request.query,
            cursor=request.cursor,
            config=self._app.config,
            needs_of=needs_of,
        )

    def _visible(self, asked: str | None, principal: Principal) -> "Visible":
        """Return what this caller may see. Raises PermissionDenied when that is nothing."""
        from computer_linker.audit.query import Visible

        scopes = [scope for scope in self._app.config.scopes if holds(principal, scope, Capability.HISTORY_READ)]
        if asked is not None:
            scopes = [scope for scope in scopes if scope.id == asked]
        if not scopes:
            where = f"Scope {asked} does not allow" if asked is not None else "No scope you can use allows"
            raise PermissionDenied(f"{where} history:read.", missing=["history:read"])
        everybodys = (scope.id for scope in scopes if holds(principal, scope, Capability.HISTORY_ALL))
        return Visible(principal.id, frozenset(scope.id for scope in scopes), frozenset(everybodys))


def _is_remote(scope: str | None) -> bool:
    return scope is not None and ("/" in scope or scope.startswith("["))


def _asked(arguments: dict[str, Any]) -> InfoRequest:
    """Parse the request. One that asks for a single part is parsed once."""
    parts: Any = arguments.get("include")
    if len(arguments) == 1 and type(parts) is list and len(parts) == 1 and type(parts[0]) is str:
        known = _ONE_PART.get(parts[0])
        if known is not None:
            return known
    with explain_validation("arguments"):
        return InfoRequest.from_wire(arguments)

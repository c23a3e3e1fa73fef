"""get_computer_info: what this computer is, what it can do, and what this caller may use."""

import asyncio
import os
import platform
from functools import partial
from typing import Any

from computer_linker import __version__
from computer_linker.config.schema import Config
from computer_linker.model.capability import Capability
from computer_linker.model.info import InfoPart
from computer_linker.model.principal import Principal
from computer_linker.model.scope import Scope, ScopePolicy
from computer_linker.policy.engine import folder_access, sees_scope
from computer_linker.service.app import App
from computer_linker.service.catalogue import Catalogue
from computer_linker.service.expected_boundary import ExpectedBoundary
from computer_linker.service.fleet import FleetManager
from computer_linker.service.known_findings import KnownFindings
from computer_linker.service.screenshots import screenshot_readiness
from computer_linker.system import NAME

_WITHOUT_OPERATIONS = frozenset({"identity", "platform", "service", "tools", "policy", "status", "exposure"})


async def computer_info(
    app: App, principal: Principal, include: list[InfoPart] | None, local_url: str | None
) -> dict[str, Any]:
    """Return the requested parts; by default a short form of all of them, with signatures instead of the long catalogue."""
    if include is None or not _WITHOUT_OPERATIONS.issuperset(include):
        await app.services.use(Catalogue).load()
    if include is None:
        return await brief_info(app, principal, local_url)
    config = app.config
    answer: dict[str, Any] = {}
    for part in dict.fromkeys(include):
        match part:
            case "identity":
                answer |= {"machineId": config.machine_id, "machineName": config.machine_name}
            case "platform":
                answer["platform"] = _platform()
            case "service":
                answer["service"] = _service(config, local_url)
            case "tools":
                answer["tools"] = await _tools(app)
            case "scopes":
                answer["scopes"] = [await _scope(app, scope, principal) for scope in _seen(config, principal)]
            case "policy":
                answer["policy"] = {scope.id: scope.policy.to_wire() for scope in _seen(config, principal)}
            case "status":
                answer["status"] = await _status_for(app, principal, local_url)
            case "operations":
                catalogue = app.services.use(Catalogue)
                answer["operations"] = await catalogue.described(catalogue.usable(_seen(config, principal)))
                answer["capabilities"] = catalogue.absent()
            case "exposure":
                others = _through_a_fleet(app) if principal.grants is None else {}
                answer["exposure"] = _exposure(config, local_url) | others
    return answer


async def brief_info(app: App, principal: Principal, local_url: str | None) -> dict[str, Any]:
    """What a client needs to begin: who answers, which scopes and operations, and nothing that is absent or a default."""
    config, catalogue = app.config, app.services.use(Catalogue)
    scopes = _seen(config, principal)
    shown = [_brief_scope(await _scope(app, scope, principal)) for scope in scopes]
    allowed = sorted({name for scope in shown for name in scope["allowedOperations"]})
    status = await _status_for(app, principal, local_url)
    return {
        "machineId": config.machine_id,
        "machineName": config.machine_name,
        "platform": {name: _platform()[name] for name in ("os", "arch")},
        "service": _given(_service(config, local_url)),
        "tools": catalogue.programs(),
        "scopes": shown,
        "policy": {scope.id: _changed(scope.policy) for scope in scopes},
        "status": {name: status[name] for name in ("ready", "blockingReasons", "warnings")},
        "exposure": {
            name: value for name, value in _exposure(config, local_url).items() if value and name != "blockingReasons"
        },
        "signatures": catalogue.signatures(allowed),
    }


def _brief_scope(scope: dict[str, Any]) -> dict[str, Any]:
    """A scope without what another field of the answer has."""
    policy = scope["capabilityPolicy"]
    boundary = {name: value for name, value in _given(policy["boundary"]).items() if name != "detail"}
    kept = {"network": policy["network"], "confirm": policy["confirm"], "boundary": boundary}
    always = {name: scope[name] for name in ("capabilities", "allowedOperations")}
    return {**_given(scope), **always, "capabilityPolicy": {"limits": _given(policy["limits"]), **kept}}


def _changed(policy: ScopePolicy) -> dict[str, Any]:
    """The fields of a policy that are not as they are by default."""
    changed: dict[str, Any] = policy.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return changed


def _given(facts: dict[str, Any]) -> dict[str, Any]:
    """The facts without those that are empty."""
    return {name: value for name, value in facts.items() if value not in (None, "", [], {})}


async def _scope(app: App, scope: Scope, principal: Principal) -> dict[str, Any]:
    policy = scope.policy
    limits = {
        "maxRuntimeSeconds": policy.max_runtime_seconds,
        "maxOutputBytes": policy.max_output_bytes,
        "maxProcesses": policy.max_processes,
        "maxMemoryMb": policy.max_memory_mb,
        "maxFileMb": policy.max_file_mb,
    }
    return {
        "id": scope.id,
        "name": scope.name or scope.id,
        "type": scope.type,
        "roots": len(scope.roots),
        "rootNames": list(scope.root_names),
        "capabilities": scope.capabilities,
        "allowedOperations": app.services.use(Catalogue).allowed(scope, principal),
        "capabilityPolicy": {
            "granted": sorted(scope.granted),
            "codex": _codex(scope),
            "limits": limits,
            "network": policy.network,
            "confirm": policy.confirm,
            "sandbox": policy.sandbox,
            "boundary": await _boundary(app, scope, principal),
        },
    }


def _codex(scope: Scope) -> list[str]:
    """What Codex may do here: look, or change files too."""
    if Capability.CODEX_RUN not in scope.granted:
        return []
    return ["codex:readOnly", *(["codex:write"] if Capability.FS_WRITE in scope.granted else [])]


async def _boundary(app: App, scope: Scope, principal: Principal) -> dict[str, Any]:
    """The effective boundary: for paths always the kernel, for commands what the probe saw the kernel refuse.

    `folders` is what a command of this caller may do with the scope's folders.
    """
    if not scope.granted & {Capability.COMMAND_RUN, Capability.PACKAGE_RUN, Capability.CODEX_RUN}:
        return {"paths": "kernel", "commands": None}
    access = folder_access(principal, scope)
    if scope.policy.sandbox == "off":
        detail = "the scope's policy says sandbox: off"
        return {"paths": "kernel", "commands": "none", "folders": access, "detail": detail}
    found = app.services.use(ExpectedBoundary).boundary
    if found is None:
        from computer_linker.providers.sandbox.sandbox import Sandbox

        found = await app.services.use(Sandbox).probe()
    boundary = {
        "paths": "kernel",
        "commands": found.named(network_cut=scope.policy.network is not True),
        "folders": access,
    }
    return boundary | ({"detail": found.detail} if found.detail else {})


def _seen(config: Config, principal: Principal) -> list[Scope]:
    return [scope for scope in config.scopes if sees_scope(principal, scope.id)]


def _platform() -> dict[str, Any]:
    return {
        "os": NAME,
        "arch": platform.machine(),
        "release": platform.release(),
        "shell": os.environ.get("SHELL"),
        "runtime": f"python {platform.python_version()}",
    }


def _service(config: Config, local_url: str | None) -> dict[str, Any]:
    public = f"{config.public_base_url.rstrip('/')}/mcp" if config.public_base_url else None
    return {
        "version": __version__,
        "transports": ["stdio", "socket", *(["http"] if local_url else [])],
        "localUrl": local_url,
        "publicUrl": public,
    }


async def _tools(app: App) -> dict[str, Any]:
    tools = await app.services.use(Catalogue).tools(app.config.scopes)
    found = {name: tool.to_wire() for name, tool in tools.items()}
    return found | {"screenshot": (await screenshot_readiness(app.computer)).to_wire()}


async def _status_for(app: App, principal: Principal, local_url: str | None) -> dict[str, Any]:
    # Only of scopes visible to this caller: a warning names its scope.
    look = partial(app.services.use(KnownFindings).status, app.config, _seen(app.config, principal))
    return await asyncio.to_thread(look, serving_http=local_url is not None)


def _through_a_fleet(app: App) -> dict[str, Any]:
    """Through which fleet this machine can be reached, when it joined one."""
    fleet = app.services.peek(FleetManager)
    reached = fleet.exposure() if fleet is not None else None
    return {} if reached is None else {"fleet": reached}


def _exposure(config: Config, local_url: str | None) -> dict[str, Any]:
    loopback = config.host in ("127.0.0.1", "localhost", "::1")
    return {
        "loopbackOnly": loopback and config.public_base_url is None,
        "localUrl": local_url,
        "publicUrl": config.public_base_url,
        "authRequired": config.owner_token is not None,
        "readyToExpose": config.owner_token is not None,
        "blockingReasons": [] if config.owner_token is not None else ["Nothing is exposed without an owner token."],
    }

"""The debug bundle: versions, the config without secrets, the state of the history. Readable before it is sent."""

import platform
import sqlite3
from typing import Any

import computer_linker
from computer_linker.audit.history import History
from computer_linker.audit.layout import list_segments, segment_path
from computer_linker.audit.masks import masked
from computer_linker.audit.query import Filter, Visible
from computer_linker.audit.redact import path_preview
from computer_linker.config.schema import Config
from computer_linker.system import NAME


def build(store: History, config: Config | None, visible: Visible | None, found: Filter) -> dict[str, Any]:
    """Build the bundle without its events: no contents, no output, no token, and only the scopes the caller may see.

    Only the owner (`visible` is None) gets absolute folder paths (a client names files relative to a scope) and the
    size of the whole history; every other caller gets the count of the events it `found`.
    """
    return {
        "versions": {
            "computerLinker": getattr(computer_linker, "__version__", "unknown"),
            "python": platform.python_version(),
            "sqlite": sqlite3.sqlite_version,
            "system": f"{NAME.capitalize()} {platform.release()} {platform.machine()}",
        },
        "config": None if config is None else _config(config, store, visible),
        "history": _state(store) if visible is None else _counted(store, found),
        "notIncluded": ["file contents", "command output", "arguments", "prompts", "typed text", "pixels", "tokens"],
    }


def _config(config: Config, store: History, visible: Visible | None) -> dict[str, Any]:
    scopes = [scope for scope in config.scopes if visible is None or scope.id in visible.scopes]
    return {
        "machineName": masked(config.machine_name),
        "host": config.host,
        "port": config.port,
        "ownerToken": "set" if config.owner_token else "not set",
        "publicBaseUrl": None if config.public_base_url is None else "set",
        "scopes": [
            {
                "id": scope.id,
                "type": scope.type,
                "roots": [path_preview(one, store.key) for one in scope.roots] if visible is None else len(scope.roots),
                "capabilities": scope.capabilities,
                "policy": _policy(scope.policy.to_wire()),
            }
            for scope in scopes
        ],
    }


def _policy(policy: dict[str, Any]) -> dict[str, Any]:
    # Rules may hold paths and arguments; so only their number is included.
    return {name: len(value) if isinstance(value, list) else value for name, value in policy.items()}


def _counted(store: History, found: Filter) -> dict[str, Any]:
    where = "0" if found.nothing else " AND ".join(found.where) or "1"
    with store.index.reading() as database:
        query = f"SELECT COUNT(*), MIN(at), MAX(at) FROM events WHERE {where}"  # noqa: S608 - constant text
        events, oldest, newest = database.execute(query, [] if found.nothing else found.values).fetchone()
    return {"events": events, "oldest": oldest, "newest": newest}


def _state(store: History) -> dict[str, Any]:
    segments = list_segments(store.folder)
    return {
        "segments": len(segments),
        "bytes": sum(segment_path(store.folder, segment).stat().st_size for segment in segments),
        **_counted(store, Filter()),
        "indexStopsAt": None if store.index.broken is None else store.index.broken.number,
    }

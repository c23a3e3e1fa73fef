"""The debug bundle: versions, the config without secrets, the state of the history. Readable before it is sent."""

import platform
import sqlite3
from typing import Any

import computer_linker
from computer_linker.audit.history import History
from computer_linker.audit.layout import list_segments, segment_path
from computer_linker.audit.masks import masked
from computer_linker.audit.redact import path_preview
from computer_linker.config.schema import Config


def build(store: History, config: Config | None, visible: frozenset[str] | None) -> dict[str, Any]:
    """Everything beside the events. It holds no contents, no output, no token, and only the scopes one may see.

    Where folders lie is told to the owner alone (`visible` is None): a client names files by their place in a scope.
    """
    return {
        "versions": {
            "computerLinker": getattr(computer_linker, "__version__", "unknown"),
            "python": platform.python_version(),
            "sqlite": sqlite3.sqlite_version,
            "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        },
        "config": None if config is None else _config(config, store, visible),
        "history": _state(store),
        "notIncluded": ["file contents", "command output", "arguments", "prompts", "typed text", "pixels", "tokens"],
    }


def _config(config: Config, store: History, visible: frozenset[str] | None) -> dict[str, Any]:
    scopes = [scope for scope in config.scopes if visible is None or scope.id in visible]
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
    # Rules may hold paths and arguments; their number is enough to see that they are there.
    return {name: len(value) if isinstance(value, list) else value for name, value in policy.items()}


def _state(store: History) -> dict[str, Any]:
    segments = list_segments(store.folder)
    with store.index.reading() as database:
        events, oldest, newest = database.execute("SELECT COUNT(*), MIN(at), MAX(at) FROM events").fetchone()
    return {
        "segments": len(segments),
        "bytes": sum(segment_path(store.folder, segment).stat().st_size for segment in segments),
        "events": events,
        "oldest": oldest,
        "newest": newest,
        "indexStopsAt": None if store.index.broken is None else store.index.broken.number,
    }

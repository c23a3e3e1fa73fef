"""The whole road in one process: real policy, audit, files and operations, with only the transport left out."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic_core import to_json

from computer_linker.config.schema import Config
from computer_linker.model.principal import Principal
from computer_linker.model.scope import Scope
from computer_linker.service.app import App, open_app

FOLDER_CAPABILITIES = [
    "fs:read", "fs:write", "search:read", "git:read", "git:write", "command:run", "process:manage", "package:run",
    "codex:run", "history:read", "artifact:read", "artifact:write",
]  # fmt: skip
COMPUTER_CAPABILITIES = [
    "screen:capture", "desktop:observe", "desktop:control", "clipboard:read", "clipboard:write", "app:control",
    "artifact:read", "artifact:write", "history:read",
]  # fmt: skip

OWNER = Principal(id="cli:tester", proof="cli", session="cli-1", connection="connection-0", client="computer-linker")
LOCAL = Principal(id="local:tester", proof="local_user", session="session-1", connection="connection-1", client="tests")


def folder_scope(root: Path, scope_id: str = "app", **policy: Any) -> dict[str, Any]:
    """A folder scope as config.json has it, with every folder capability."""
    return {
        "id": scope_id,
        "type": "folder",
        "roots": [root.as_posix()],
        "capabilities": FOLDER_CAPABILITIES,
        "policy": policy,
    }


def computer_scope(scope_id: str = "desk", **policy: Any) -> dict[str, Any]:
    """A computer scope as config.json has it, with every desktop capability."""
    return {"id": scope_id, "type": "computer", "capabilities": COMPUTER_CAPABILITIES, "policy": policy}


@dataclass
class Road:
    """A service without a transport. `root` is the folder of scope `app`, `home` the state folder."""

    app: App
    root: Path
    home: Path

    @staticmethod
    @asynccontextmanager
    async def open(
        tmp_path: Path, scopes: list[dict[str, Any]] | None = None, computer: Any = None
    ) -> AsyncIterator["Road"]:
        root, home = tmp_path / "root", tmp_path / "home"
        root.mkdir(exist_ok=True)
        home.mkdir(mode=0o700, exist_ok=True)
        given = [folder_scope(root)] if scopes is None else scopes
        config = Config(
            machine_id="test-machine", machine_name="test", scopes=[Scope.from_wire(scope) for scope in given]
        )
        async with open_app(home, lambda: config, computer) as app:
            yield Road(app, root, home)

    async def call(
        self,
        op: str,
        target: Any = None,
        *,
        scope: str = "app",
        input: dict[str, Any] | None = None,
        options: dict[str, Any] | None = None,
        confirm: dict[str, str] | None = None,
        principal: Principal = LOCAL,
    ) -> dict[str, Any]:
        """Send one wire-shaped call and give its envelope as plain JSON values."""
        value: dict[str, Any] = {"scope": scope, "op": op}
        given = {"target": target, "input": input, "options": options, "confirm": confirm}
        value.update({name: part for name, part in given.items() if part is not None})
        reply = await self.app.dispatcher.call_wire(value, principal)
        await asyncio.sleep(0)  # no client sees an answer before the loop has turned once
        envelope: dict[str, Any] = json.loads(to_json(reply.envelope, by_alias=True))
        return envelope

    async def data(self, op: str, target: Any = None, **parts: Any) -> dict[str, Any]:
        """The data of a call that must succeed."""
        envelope = await self.call(op, target, **parts)
        assert envelope["ok"], envelope
        data: dict[str, Any] = envelope["data"]
        return data

    async def code(self, op: str, target: Any = None, **parts: Any) -> str:
        """The error code of a call that must fail."""
        envelope = await self.call(op, target, **parts)
        assert not envelope["ok"], envelope
        code: str = envelope["error"]["code"]
        return code

"""A bridge client: one socket, JSON-RPC 2.0 a line, and nothing it does not have to know."""

import json
import os
import uuid
from pathlib import Path
from typing import Any

import anyio

from computer_linker import home as places


class BridgeClient:
    """One connection to the bridge's socket."""

    def __init__(self, stream: Any, workspace: str) -> None:
        self._stream = stream
        self._rest = b""
        self.workspace = workspace

    @staticmethod
    async def open(home: Path, workspace: str) -> "BridgeClient":
        return BridgeClient(await anyio.connect_unix(os.fspath(home / places.BRIDGE_NAME)), workspace)

    async def aclose(self) -> None:
        await self._stream.aclose()

    def meta(self, **more: Any) -> dict[str, Any]:
        return {"schemaVersion": 1, "requestId": str(uuid.uuid4()), "workspacePath": self.workspace, **more}

    async def send(self, method: str, *, meta: dict[str, Any] | None = None, **params: Any) -> str:
        request_id = str(uuid.uuid4())
        message = {"jsonrpc": "2.0", "id": request_id, "method": method}
        message["params"] = {"meta": meta or self.meta(), **params}  # type: ignore[assignment]  # a nested object
        await self.send_raw(json.dumps(message).encode())
        return request_id

    async def send_raw(self, raw: bytes) -> None:
        await self._stream.send(raw + b"\n")

    async def receive(self) -> dict[str, Any]:
        with anyio.fail_after(30):
            while b"\n" not in self._rest:
                self._rest += await self._stream.receive()
        line, _, self._rest = self._rest.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer

    async def ask(self, method: str, *, meta: dict[str, Any] | None = None, **params: Any) -> dict[str, Any]:
        await self.send(method, meta=meta, **params)
        return await self.receive()

    async def result(self, method: str, **params: Any) -> dict[str, Any]:
        answer = await self.ask(method, **params)
        assert "result" in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    async def code(self, method: str, **params: Any) -> str:
        answer = await self.ask(method, **params)
        assert "error" in answer, answer
        code: str = answer["error"]["code"]
        return code

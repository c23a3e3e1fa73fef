"""A service with its bridge on a real socket, and the person who approves."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from computer_linker.approvals.approvals import Approvals
from computer_linker.computer.base import Computer
from computer_linker.config.schema import Config
from computer_linker.service.app import App, open_app
from computer_linker.transports.bridge.listener import BridgeListener
from support.bridge import BridgeClient
from support.road import computer_scope
from support.waiting import until


class Host:
    """A service with its bridge, and a client of it."""

    def __init__(self, app: App, home: Path, workspace: Path, client: BridgeClient) -> None:
        self.app, self.home, self.workspace, self.client = app, home, workspace, client

    @property
    def approvals(self) -> Approvals:
        return self.app.services.use(Approvals)

    async def token(self, method: str, *, approve: bool = True, **params: Any) -> str:
        """A token for one act, approved by the person."""
        issued = await self.client.result("desktop.confirm.issue", intent={"method": method, "params": params})
        if approve:
            assert self.approvals.answer(issued["approvalId"], "yes") is not None
        token: str = issued["token"]
        return token

    async def act(self, method: str, **params: Any) -> dict[str, Any]:
        """An act with a token of its own."""
        token = await self.token(method, **params)
        return await self.client.result(method, confirm={"token": token}, **params)

    async def begin_endless_wait(self, route: dict[str, Any]) -> tuple[str, str]:
        """Wait for what never shows, until it is under way; the request's own id and the message's."""
        meta, gone = self.client.meta(), {"selectorExists": {"titleContains": "never shown"}}
        sent = await self.client.send("desktop.waitUntil", meta=meta, route=route, timeoutMs=60_000, condition=gone)
        await until(lambda: self.evidence())
        return meta["requestId"], sent

    def evidence(self) -> list[Path]:
        return sorted((self.workspace / "artifacts" / "desktop").glob("*/*"))


@asynccontextmanager
async def hosting(
    tmp_path: Path, computer: Computer | None, policy: dict[str, Any] | None = None, **bridge: Any
) -> AsyncIterator[Host]:
    """A service whose workspaces lie in `tmp_path/workspaces`; its client works in the one called `one`."""
    home, workspaces = tmp_path / "home", tmp_path / "workspaces"
    home.mkdir(mode=0o700)
    (workspaces / "one").mkdir(parents=True)
    settings = {"workspaceRoot": str(workspaces), **bridge}
    config = Config.from_wire(
        {"machineId": "m", "machineName": "m", "scopes": [computer_scope(**(policy or {}))], "bridge": settings}
    )
    async with open_app(home, lambda: config, computer) as app:
        served = BridgeListener(app.services, app.dispatcher, app.computer)
        await served.listen(home)
        client = await BridgeClient.open(home, os.fspath(workspaces / "one"))
        try:
            yield Host(app, home, workspaces / "one", client)
        finally:
            await client.aclose()
            await served.aclose()

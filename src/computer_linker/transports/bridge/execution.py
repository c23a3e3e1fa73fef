"""One execution of a bridge request: cancellation, calls to the dispatcher, and the evidence it stores."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio
from anyio import to_thread
from pydantic_core import to_json

from computer_linker.approvals.approvals import Approver
from computer_linker.artifacts.broker import ArtifactBroker
from computer_linker.artifacts.store import Owner
from computer_linker.dispatch.dispatcher import Dispatcher
from computer_linker.errors import LinkError
from computer_linker.model.base import Model
from computer_linker.model.envelope import Call, Reply
from computer_linker.model.json_text import read_json
from computer_linker.model.principal import Principal
from computer_linker.providers.evidence import Evidence
from computer_linker.transports.bridge.messages import BridgeFault, fault_of_envelope

log = logging.getLogger(__name__)


@dataclass
class Execution:
    """One request in progress."""

    id: str
    request_id: str
    principal: Principal
    dispatcher: Dispatcher
    workspace: str
    evidence: Evidence | None = None
    stop: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    ended: anyio.Event = field(default_factory=anyio.Event)
    is_aborted: bool = False

    async def send(self, call: Call, ask: Approver | None = None) -> tuple[dict[str, Any], Reply]:
        """Return the data of a successful call as plain JSON values; a refusal is raised as a BridgeFault."""
        notes = {} if self.evidence is None else {"evidence": self.id}
        reply = await self.dispatcher.call(call, self.principal, ask=ask, parent=self.id, notes=notes)
        self._note(call.op, reply)
        if not reply.ok:
            raise fault_of_envelope(reply.envelope["error"])
        return _plain(reply.envelope["data"]), reply

    async def capture(self, call: Call, name: str) -> str | None:
        """Store a screenshot of the target as evidence; None where the scope or the desktop provides none.

        Raises BridgeFault when there is a screenshot and it cannot be stored.
        """
        try:
            _, reply = await self.send(call)
        except BridgeFault:
            return None
        return await self.keep_picture(reply, name)

    async def keep_picture(self, reply: Reply, name: str) -> str | None:
        """Store the screenshot attached to a reply, masked as every capture is."""
        for one in reply.attachments:
            if one.mime == "image/png" and self.evidence is not None:
                await self._write(self.evidence, name, one.data)
                await self._file(name, one.data, str(reply.envelope["scope"]))
                return name
        return None

    async def keep_tree(self, nodes: list[dict[str, Any]]) -> str | None:
        """Store the elements that were read."""
        if self.evidence is not None:
            await self._write(self.evidence, "ax.json", to_json({"nodes": nodes}, indent=1))
        return None if self.evidence is None else "ax.json"

    async def finish(self, result: Mapping[str, Any]) -> None:
        """Write the result beside the evidence, also for a cancelled execution."""
        evidence, self.evidence = self.evidence, None
        if evidence is not None:
            with anyio.CancelScope(shield=True):
                try:
                    await to_thread.run_sync(evidence.finish, dict(result))
                except (OSError, LinkError) as error:
                    # The effect already happened: the client gets its outcome all the same.
                    log.error("the evidence of %s is not complete: %s", self.id, error)

    def evidence_paths(self, **files: str | None) -> dict[str, Any]:
        """The location of the evidence, as it is put into an answer."""
        where = "" if self.evidence is None else self.evidence.where
        found = {name: file for name, file in files.items() if file is not None}
        return {"dir": f"{self.workspace.rstrip('/')}/{where}/", **found}

    async def _write(self, evidence: Evidence, name: str, data: bytes) -> None:
        try:
            await to_thread.run_sync(evidence.write, name, data)
        except (OSError, LinkError) as error:
            raise BridgeFault("DESKTOP_INTERNAL_ERROR", "The evidence cannot be written to the workspace.") from error

    async def _file(self, name: str, picture: bytes, scope: str) -> None:
        """Store the screenshot as an artifact too, where artifact.list and the evidence page find it."""
        owner = Owner(scope, self.principal.id, self.principal.session, self.id, backend="local")
        try:
            broker = self.dispatcher.services.use(ArtifactBroker)
            await broker.keep(picture, "screenshot", name.removesuffix(".png"), owner)
        except (OSError, LinkError) as error:
            # The workspace has it; a missing second copy is no reason to fail.
            log.warning("the evidence of %s is not among the artifacts: %s", self.id, error)

    def _note(self, op: str, reply: Reply) -> None:
        if self.evidence is not None:
            error = None if reply.ok else reply.envelope["error"]["code"]
            operation = str(reply.envelope["operationId"])
            effect = reply.envelope.get("effect")
            self.evidence.trace(op, operation=operation, ok=reply.ok, error=error, effect=effect)


def _plain(data: Any) -> dict[str, Any]:
    value = data.to_wire() if isinstance(data, Model) else read_json(to_json(data, by_alias=True))
    if type(value) is not dict:
        raise TypeError(value)
    return value


async def start_evidence(workspace: int, execution_id: str) -> Evidence:
    """Create the evidence folder of an execution before anything is done."""
    try:
        return await to_thread.run_sync(Evidence.begin, workspace, execution_id)
    except LinkError as error:
        raise BridgeFault("DESKTOP_WORKSPACE_FORBIDDEN", error.message, details=error.details) from error

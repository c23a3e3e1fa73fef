"""The bridge's methods: each is a few dispatcher calls and the evidence of them."""

import hashlib
from collections import OrderedDict
from dataclasses import replace
from typing import Any

from computer_linker import __version__
from computer_linker.approvals.approvals import Approvals
from computer_linker.approvals.request import Answer, ApprovalRequest
from computer_linker.computer.base import Computer
from computer_linker.computer.facets.files import Files
from computer_linker.config.schema import Config
from computer_linker.errors import ConfirmRequired, InvalidRequest, LinkError
from computer_linker.model.envelope import Call
from computer_linker.model.scope import Scope
from computer_linker.policy.digest import canonical_request
from computer_linker.policy.paths import rooted
from computer_linker.providers.evidence import hold
from computer_linker.registry.validation import explain_validation
from computer_linker.services import Services
from computer_linker.system import os
from computer_linker.transports.bridge import translate
from computer_linker.transports.bridge.execution import Execution
from computer_linker.transports.bridge.listener import Peer
from computer_linker.transports.bridge.messages import (
    ACTS,
    Act,
    BridgeFault,
    Click,
    Confirm,
    Find,
    Issue,
    Meta,
    Observe,
    TypeText,
    WaitUntil,
    fault_of_envelope,
)

_KEPT = 10_000
_PURPOSES = {"accessibility": "AX observe/find/action", "screen": "Screenshot capture"}
_NAMES = {"accessibility": "accessibility", "screen": "screenRecording"}


class Methods:
    """Implements each method. One instance serves every connection."""

    def __init__(self, services: Services, computer: Computer) -> None:
        self._services = services
        self._computer = computer
        self._fingerprints: OrderedDict[str, str] = OrderedDict()
        self._params: OrderedDict[bytes, str] = OrderedDict()

    def scope(self) -> str:
        """The computer scope the bridge acts in: the configured one, else the only one."""
        config: Config = self._services.config
        if config.bridge.scope is not None:
            return config.bridge.scope
        found = [scope.id for scope in config.scopes if scope.type == "computer"]
        if len(found) != 1:
            raise BridgeFault(
                "DESKTOP_HOST_NOT_READY", f"The config has {len(found)} computer scopes. Name one in bridge.scope."
            )
        return found[0]

    async def health(self, peer: Peer) -> dict[str, Any]:
        """Versions, grants, and the caller's identity as the service determined it."""
        facts = await self._computer.facts.environment()
        return {
            "hostVersion": __version__,
            "macos": facts.release if facts.system == "macos" else None,
            "system": facts.system,
            "release": facts.release,
            "permissions": {_NAMES[facet]: "granted" if has else "denied" for facet, has in self._grants().items()},
            "bridge": {"schemaVersion": 1},
            "peer": peer.shown(),
        }

    def doctor(self, peer: Peer) -> dict[str, Any]:
        """What is missing, and what would help."""
        grants = self._grants()
        states = self._computer.capabilities().facets
        issues = [f"{states[facet].reason} {states[facet].remedy}".strip() for facet, has in grants.items() if not has]
        if workspace_root(self._services.config) is None:
            issues.append("No workspace root is set: bridge.workspaceRoot in the config, or WORKSPACE_ROOT.")
        try:
            self.scope()
        except BridgeFault as fault:
            issues.append(str(fault.error["message"]))
        return {
            "permissions": {
                _NAMES[facet]: {"granted": has, "required": True, "purpose": _PURPOSES[facet]}
                for facet, has in grants.items()
            },
            "issues": issues,
            "healthy": not issues,
            "peer": peer.shown(),
        }

    async def observe(self, run: Execution, body: Observe) -> dict[str, Any]:
        """A screenshot and the controls, as evidence."""
        data, reply = await run.send(translate.observe_call(self.scope(), body))
        picture = await run.keep_picture(reply, "observe.png")
        tree = await run.keep_tree(data["evidence"]["nodes"]) if body.options.include_ax_tree else None
        taken = data["route"] or {}
        return {
            "executionId": run.id,
            "routeResolved": {"frontmostBundleId": taken.get("app"), "windowTitle": taken.get("window"), "pid": taken.get("pid")},
            "evidence": run.evidence_paths(screenshotPath=picture, axPath=tree),
        }  # fmt: skip

    async def find(self, run: Execution, body: Find) -> dict[str, Any]:
        """The elements that match a selector."""
        data, _ = await run.send(translate.find_call(self.scope(), body))
        found = self._remembered(translate.elements_of(data))
        tree = await run.keep_tree(data["elements"])
        return {
            "executionId": run.id,
            "elementRefs": found,
            "matched": data["matched"],
            "evidence": run.evidence_paths(axPath=tree),
        }

    async def wait_until(self, run: Execution, body: WaitUntil) -> dict[str, Any]:
        """Wait for an element to appear."""
        data, _ = await run.send(translate.wait_call(self.scope(), body))
        tree = await run.keep_tree(data["elements"])
        return {
            "executionId": run.id,
            "ok": True,
            "matched": data["matched"],
            "elapsedMs": data["elapsedMs"],
            "elementRefs": self._remembered(translate.elements_of(data)),
            "evidence": run.evidence_paths(axPath=tree),
        }

    async def issue(self, run: Execution, body: Issue, peer: Peer) -> dict[str, Any]:
        """A token for one act, worth nothing until a person approves it."""
        params = {name: value for name, value in body.intent.params.items() if name not in ("meta", "confirm")}
        with explain_validation("intent.params"):
            act = ACTS[body.intent.method].from_wire(params)
        call = translate.act_call(self.scope(), act)
        wanted = {"op": call.op, "target": call.target, "input": call.input, "options": call.options}
        ttl = {"ttlSeconds": body.ttl_ms // 1000}
        data, _ = await run.send(Call(call.scope, "confirm.issue", None, wanted, ttl))
        digest = params_digest(body.intent.method, params)
        _remember(self._params, _hash(data["token"]), digest)
        return {
            "token": data["token"],
            "expiresAt": data["expiresAt"],
            "scope": {"method": body.intent.method, "paramsDigest": digest, "requestDigest": data["digest"]},
            "peer": peer.shown(),
            "approvalId": data["approvalId"],
            "approved": False,
        }

    async def act(
        self, run: Execution, method: str, meta: Meta, confirm: Confirm, params: dict[str, Any], body: Act
    ) -> dict[str, Any]:
        """Do one confirmed act, with a screenshot before and after."""
        call = translate.act_call(self.scope(), body)
        self._check_fingerprint(body)
        if not await self._is_confirmed(run, call, method, meta, confirm, params):
            refused = ConfirmRequired(
                "This needs a person's yes: ask for a token with desktop.confirm.issue and send it as confirm.token."
            )
            reply = await run.dispatcher.refuse({"scope": call.scope, "op": call.op}, run.principal, refused)
            raise fault_of_envelope(reply.envelope["error"])
        capture = translate.screenshot_of(call.scope, body.route)
        before = await run.capture(capture, "before.png")
        ask = _approved_by_phrase if confirm.token is None and confirm.phrase is not None else None
        data, reply = await run.send(replace(call, confirm=confirm.token), ask)
        after = await _after(run, capture)
        return {
            "executionId": run.id,
            translate.done_word(method): bool(data["delivered"]),
            "method": data["method"],
            "effect": reply.envelope.get("effect"),
            "evidence": run.evidence_paths(beforeScreenshot=before, afterScreenshot=after),
        }

    async def _is_confirmed(
        self, run: Execution, call: Call, method: str, meta: Meta, confirm: Confirm, params: dict[str, Any]
    ) -> bool:
        """True when the call may go to the dispatcher, which still spends the token, once, for exactly this call."""
        if confirm.token is not None:
            # Refused before a screenshot is taken: a guess must cost nothing here, and must not reveal what is pending.
            is_right = self._params.get(_hash(confirm.token)) == params_digest(method, params)
            if not is_right:
                self._services.use(Approvals).ledger.count_wrong(run.principal)
            return is_right
        if confirm.phrase is not None:
            is_phrase = confirm.phrase in ("CONFIRM", f"CONFIRM:{meta.request_id}")
            return is_phrase and self._services.config.bridge.allow_phrase and not run.principal.is_remote
        return self._services.use(Approvals).has_standing(call, run.principal)

    def _check_fingerprint(self, body: Act) -> None:
        target = body.target if isinstance(body, Click | TypeText) else None
        given = None if target is None else target.element_ref
        if given is None or given.fingerprint is None:
            return
        if self._fingerprints.get(given.element_id) != given.fingerprint:
            raise BridgeFault(
                "DESKTOP_ELEMENT_NOT_FOUND", "The fingerprint is not that of this element. Find it again.",
                details={"elementId": given.element_id},
            )  # fmt: skip

    def _remembered(self, refs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        for ref in refs:
            _remember(self._fingerprints, ref["elementId"], ref["fingerprint"])
        return refs

    def _grants(self) -> dict[str, bool]:
        known = self._computer.capabilities()
        return {"accessibility": known.has("accessibility"), "screen": known.has("screen")}


def params_digest(method: str, params: dict[str, Any]) -> str:
    """The full SHA-256 digest of a method's own parameters in their canonical form; never truncated."""
    if not all(isinstance(name, str) for name in params):
        raise InvalidRequest("Parameters are an object.")
    return hashlib.sha256(canonical_request("", method, None, params, None)).hexdigest()


async def _after(run: Execution, capture: Call) -> str | None:
    """Take the screenshot after an act. The act is done: a failure to store the screenshot is not its failure."""
    try:
        return await run.capture(capture, "after.png")
    except BridgeFault:
        return None


async def _approved_by_phrase(asked: ApprovalRequest) -> Answer | None:
    return "yes"


def _remember(kept: "OrderedDict[Any, str]", key: Any, value: str) -> None:
    kept[key] = value
    kept.move_to_end(key)
    while len(kept) > _KEPT:
        kept.popitem(last=False)


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


# The workspace named by a request, confined beneath WORKSPACE_ROOT by the kernel.


def workspace_root(config: Config) -> str | None:
    """The root of all workspaces: from the config, else from the service's environment."""
    root = config.bridge.workspace_root or os.environ.get("WORKSPACE_ROOT")
    return root if root and root.startswith("/") else None


def open_workspace(config: Config, files: Files, given: str) -> int:
    """Open the folder named by a request and return its descriptor; blocking.

    The text of the path only selects a name beneath the root. Whether that name stays beneath it is decided by
    the kernel while it opens it, so neither `..` nor a link leads out.
    """
    root = workspace_root(config)
    if root is None:
        raise BridgeFault(
            "DESKTOP_HOST_NOT_READY",
            "No workspace root is set. Set bridge.workspaceRoot in the config, or WORKSPACE_ROOT.",
        )
    name = _beneath(root, given)
    if name is None:
        raise _forbidden("workspacePath is not beneath WORKSPACE_ROOT.")
    try:
        path = rooted(Scope(id="bridge", type="folder", roots=[root]), name, config=config, for_writing=True)
        return hold(lambda: files.open_folder(path))
    except LinkError as error:
        raise _forbidden(error.message) from error
    except OSError as error:
        raise _forbidden(f"The workspace cannot be opened ({error.strerror}).") from error


def _beneath(root: str, given: str) -> str | None:
    """The name beneath the root that an absolute path refers to; None when it is outside."""
    if "\0" in given or ".." in given.split("/"):
        return None
    for start in (root, os.path.realpath(root)):
        start = start.rstrip("/")
        if given.rstrip("/") == start:
            return ""
        if given.startswith(start + "/"):
            return given[len(start) + 1 :]
    return None


def _forbidden(message: str) -> BridgeFault:
    return BridgeFault("DESKTOP_WORKSPACE_FORBIDDEN", message)

"""Request models of the bridge: the parameters of the seed, closed to anything else."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from computer_linker.errors import LinkError
from computer_linker.model.base import Model

Short = Annotated[str, Field(min_length=1, max_length=300)]


class Meta(Model):
    """Fields of every request."""

    schema_version: Literal[1]
    request_id: Annotated[str, Field(min_length=1, max_length=64)]
    workspace_path: Annotated[str, Field(min_length=1, max_length=4096)]
    timeout_ms: Annotated[int, Field(ge=1, le=600_000)] = 60_000


class Confirm(Model):
    """A person's approval. The last two fields are not trusted: approval lives in the service."""

    token: Annotated[str | None, Field(max_length=200)] = None
    phrase: Annotated[str | None, Field(max_length=200)] = None
    approved_at: Annotated[str | None, Field(max_length=64)] = None
    approver: Annotated[str | None, Field(max_length=200)] = None


class AppGiven(Model):
    bundle_id: Short | None = None
    name: Short | None = None
    pid: Annotated[int | None, Field(ge=1)] = None


class WindowGiven(Model):
    title_pattern: Short | None = None
    id: Short | None = None


class RouteGiven(Model):
    """Which application or window; nothing means the focused one."""

    app: AppGiven | None = None
    window: WindowGiven | None = None
    focus_policy: Literal["focusIfNeeded"] = "focusIfNeeded"


class FrameGiven(Model):
    x: float
    y: float
    width: float
    height: float


class ElementRef(Model):
    """An element as desktop.find returned it. Only the id and the fingerprint count."""

    element_id: Annotated[str, Field(min_length=1, max_length=40)]
    fingerprint: Annotated[str | None, Field(max_length=1000)] = None
    role: str | None = None
    title: str | None = None
    value: str | None = None
    frame: FrameGiven | None = None


class TargetGiven(Model):
    element_ref: ElementRef | None = None
    selector: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.element_ref is None) == (self.selector is None):
            raise ValueError("give one of elementRef and selector")
        return self


class ObserveOptions(Model):
    include_screenshot: bool = True
    include_ax_tree: bool = True
    ax_max_depth: Annotated[int, Field(ge=1, le=8)] = 8
    ax_max_nodes: Annotated[int, Field(ge=1, le=2000)] = 2000


class Nothing(Model):
    """A method without parameters of its own."""


class Observe(Model):
    route: RouteGiven = RouteGiven()
    options: ObserveOptions = ObserveOptions()


class Find(Model):
    route: RouteGiven = RouteGiven()
    selector: dict[str, Any]


class Click(Model):
    route: RouteGiven = RouteGiven()
    target: TargetGiven


class TypeOptions(Model):
    clear_before: bool = False


class TypeText(Model):
    route: RouteGiven = RouteGiven()
    target: TargetGiven | None = None
    text: Annotated[str, Field(max_length=100_000)]
    options: TypeOptions = TypeOptions()


class HotkeyOptions(Model):
    delay_ms: Annotated[int, Field(ge=0, le=1000, description="Reserved; keys go down and up without a pause.")] = 50


class Hotkey(Model):
    route: RouteGiven = RouteGiven()
    keys: Annotated[list[Annotated[str, Field(min_length=1, max_length=30)]], Field(min_length=1, max_length=5)]
    options: HotkeyOptions = HotkeyOptions()


class Condition(Model):
    selector_exists: dict[str, Any]


class WaitUntil(Model):
    route: RouteGiven = RouteGiven()
    condition: Condition
    poll_ms: Annotated[int, Field(ge=10, le=60_000, description="Not needed: changes are told, not polled.")] = 500
    timeout_ms: Annotated[int, Field(ge=1, le=300_000)]


class Abort(Model):
    execution_id: Annotated[str, Field(min_length=1, max_length=64)]


class Intent(Model):
    method: Literal["desktop.click", "desktop.typeText", "desktop.hotkey"]
    params: dict[str, Any]


class Issue(Model):
    intent: Intent
    ttl_ms: Annotated[int, Field(ge=1000, le=600_000)] = 60_000


Act = Click | TypeText | Hotkey
ACTS: dict[str, type[Click] | type[TypeText] | type[Hotkey]] = {
    "desktop.click": Click,
    "desktop.typeText": TypeText,
    "desktop.hotkey": Hotkey,
}
BODIES: dict[str, type[Model]] = {
    "desktop.health": Nothing,
    "desktop.doctor": Nothing,
    "desktop.observe": Observe,
    "desktop.find": Find,
    "desktop.waitUntil": WaitUntil,
    "desktop.abort": Abort,
    "desktop.confirm.issue": Issue,
    **ACTS,
}


# The bridge's nine error codes, and the mapping from our error codes to them.

CODES: dict[str, str] = {
    "invalid_request": "DESKTOP_INVALID_REQUEST",
    "unknown_operation": "DESKTOP_INVALID_REQUEST",
    "already_exists": "DESKTOP_INVALID_REQUEST",
    "limit_exceeded": "DESKTOP_INVALID_REQUEST",
    "unknown_scope": "DESKTOP_HOST_NOT_READY",
    "unsupported_platform": "DESKTOP_HOST_NOT_READY",
    "provider_unavailable": "DESKTOP_HOST_NOT_READY",
    "permission_denied": "DESKTOP_PERMISSION_MISSING",
    "os_permission_required": "DESKTOP_PERMISSION_MISSING",
    "path_out_of_scope": "DESKTOP_WORKSPACE_FORBIDDEN",
    "confirm_required": "DESKTOP_CONFIRM_REQUIRED",
    "denied_by_person": "DESKTOP_CONFIRM_REQUIRED",
    "no_answer": "DESKTOP_CONFIRM_REQUIRED",
    "element_not_found": "DESKTOP_ELEMENT_NOT_FOUND",
    "stale_reference": "DESKTOP_ELEMENT_NOT_FOUND",
    "not_found": "DESKTOP_ELEMENT_NOT_FOUND",
    "conflict": "DESKTOP_ELEMENT_NOT_FOUND",
    "timeout": "DESKTOP_TIMEOUT",
    "aborted": "DESKTOP_ABORTED",
    "paused": "DESKTOP_ABORTED",
    "execution_failed": "DESKTOP_INTERNAL_ERROR",
    "process_not_found": "DESKTOP_INTERNAL_ERROR",
}


class BridgeFault(Exception):
    """The error object of one bridge answer."""

    def __init__(
        self, code: str, message: str, *, retryable: bool = False, details: dict[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.error: dict[str, Any] = {
            "code": code,
            "message": message,
            "retryable": retryable,
            "details": details or {},
        }
        self.is_recorded = False
        """The dispatcher has recorded it."""


def fault_of(error: LinkError) -> BridgeFault:
    """Convert a LinkError to a bridge error; `details.code` has our own error code."""
    return _fault(
        {"code": error.code, "message": error.message, "retryable": error.retryable, "details": error.details}
    )


def fault_of_envelope(error: dict[str, Any]) -> BridgeFault:
    """Convert the `error` of the dispatcher's envelope to a bridge error."""
    fault = _fault(error)
    fault.is_recorded = True
    return fault


def _fault(error: dict[str, Any]) -> BridgeFault:
    code = CODES.get(error["code"], "DESKTOP_INTERNAL_ERROR")
    details = {**error["details"], "code": error["code"]}
    return BridgeFault(code, error["message"], retryable=error["retryable"], details=details)

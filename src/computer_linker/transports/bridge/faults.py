"""The bridge's nine error codes, and the mapping from our error codes to them."""

from typing import Any

from computer_linker.errors import LinkError

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


def fault_of(error: LinkError) -> BridgeFault:
    """Convert a LinkError to a bridge error; `details.code` has our own error code."""
    return fault_of_envelope(
        {"code": error.code, "message": error.message, "retryable": error.retryable, "details": error.details}
    )


def fault_of_envelope(error: dict[str, Any]) -> BridgeFault:
    """Convert the `error` of an envelope to a bridge error."""
    code = CODES.get(error["code"], "DESKTOP_INTERNAL_ERROR")
    details = {**error["details"], "code": error["code"]}
    return BridgeFault(code, error["message"], retryable=error["retryable"], details=details)

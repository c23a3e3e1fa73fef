"""Every failure a client can see: one class per wire code."""

from typing import ClassVar


class LinkError(Exception):
    """A failure with a wire code, a sentence for a person, and details as data."""

    code: ClassVar[str]
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, /, **details: object) -> None:
        super().__init__(message)
        self.message = message
        self.details = details


class InvalidRequest(LinkError):
    code = "invalid_request"


class UnknownScope(LinkError):
    code = "unknown_scope"


class UnknownOperation(LinkError):
    code = "unknown_operation"


class PermissionDenied(LinkError):
    code = "permission_denied"


class PathOutOfScope(LinkError):
    code = "path_out_of_scope"


class UnsupportedPlatform(LinkError):
    code = "unsupported_platform"


class ProviderUnavailable(LinkError):
    code = "provider_unavailable"


class TimedOut(LinkError):
    code = "timeout"
    retryable = True


class ProcessNotFound(LinkError):
    code = "process_not_found"


class OsPermissionRequired(LinkError):
    code = "os_permission_required"


class ExecutionFailed(LinkError):
    code = "execution_failed"


class NotFound(LinkError):
    code = "not_found"


class AlreadyExists(LinkError):
    code = "already_exists"


class Conflict(LinkError):
    code = "conflict"


class ConfirmRequired(LinkError):
    code = "confirm_required"


class DeniedByPerson(LinkError):
    code = "denied_by_person"


class NoAnswer(LinkError):
    code = "no_answer"


class Paused(LinkError):
    code = "paused"
    retryable = True


class LimitExceeded(LinkError):
    code = "limit_exceeded"


class Aborted(LinkError):
    code = "aborted"


class ElementNotFound(LinkError):
    code = "element_not_found"


class StaleReference(LinkError):
    code = "stale_reference"


class ConfigInvalid(ExecutionFailed):
    """The config file cannot be used as it is; the message names the field, `hint` what would help.

    On the wire it is `execution_failed`: while the file is invalid every call is refused with this message.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.hint = hint


class CannotServe(Exception):
    """The service did not start; the message is one line for a person, `hint` is the remedy."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def wire_codes() -> dict[str, type[LinkError]]:
    """Every wire code with its class."""
    return {cls.code: cls for cls in LinkError.__subclasses__()}

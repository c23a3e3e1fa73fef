"""Every failure a client can see: one class per wire code."""

from collections.abc import Iterable
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong in config.json: the field, what is wrong with it, and the line and column where known."""

    field: tuple[str | int, ...]
    text: str
    kind: str = ""
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        place = "config.json" if self.line is None else f"config.json:{self.line}:{self.column}"
        name = ".".join(str(part) for part in self.field)
        return f"{place}: `{name}` {self.text}" if name else f"{place}: {self.text}"


class ConfigInvalid(ExecutionFailed):
    """The config file cannot be used as it is; the message names the field, `hint` what would help.

    On the wire it is `execution_failed`. `problems` has every problem of the file's content; it is empty when the file is
    missing, cannot be read, or could have been written by another user.
    """

    def __init__(self, message: str, hint: str = "", problems: Iterable[Problem] = ()) -> None:
        super().__init__(message, hint=hint)
        self.hint = hint
        self.problems = tuple(problems)

    @classmethod
    def of(cls, problems: Iterable[Problem], hint: str) -> "ConfigInvalid":
        """The refusal for these problems, all in one message."""
        found = tuple(problems)
        return cls("; ".join(str(problem) for problem in found), hint, found)


class CannotServe(Exception):
    """The service did not start; the message is one line for a person, `hint` is the remedy."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def wire_codes() -> dict[str, type[LinkError]]:
    """Every wire code with its class."""
    return {cls.code: cls for cls in LinkError.__subclasses__()}

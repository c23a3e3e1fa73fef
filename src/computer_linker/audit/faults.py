"""Errors of the history, with messages a person can act on."""

from computer_linker.errors import ConfigInvalid, ExecutionFailed


class AuditUnavailable(ExecutionFailed):
    """The history cannot be written now, so nothing may happen that would have to be in it."""

    retryable = True


class AuditDamaged(ConfigInvalid):
    """The history on disk is not what this service wrote; it does not start on top of it."""


def unwritable(error: OSError) -> AuditUnavailable:
    """Return the error for a write to the history that the system refused."""
    return AuditUnavailable(
        f"The history cannot be written ({error.strerror or 'I/O error'}), and nothing runs unrecorded. "
        "Free some space or mend the state folder, then retry.",
        errno=error.errno,
    )

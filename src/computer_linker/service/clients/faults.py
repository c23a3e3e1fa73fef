"""Why a client's settings are left alone."""


class CannotEdit(Exception):
    """The file is not one we can change safely; the message says why, and nothing was written."""

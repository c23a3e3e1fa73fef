"""Maps OS errors to wire errors; messages contain the path in the scope, never the host's."""

import errno

from computer_linker.errors import (
    AlreadyExists,
    Conflict,
    ExecutionFailed,
    InvalidRequest,
    LimitExceeded,
    LinkError,
    NotFound,
    OsPermissionRequired,
    PathOutOfScope,
)

FAULTS: dict[int, tuple[type[LinkError], str]] = {
    errno.ENOENT: (NotFound, "{path} does not exist."),
    errno.ENOTDIR: (NotFound, "{path} does not exist: a name before its last is not a folder."),
    errno.EISDIR: (InvalidRequest, "{path} is a folder, not a file."),
    errno.EEXIST: (AlreadyExists, "{path} already exists."),
    errno.ENOTEMPTY: (Conflict, "{path} is a folder that is not empty."),
    errno.EACCES: (OsPermissionRequired, "The system does not let this user open {path}. Change its mode or owner."),
    errno.EPERM: (OsPermissionRequired, "The system does not permit this on {path}. Change its mode, owner or attributes."),
    errno.EROFS: (OsPermissionRequired, "{path} lies on a file system that is mounted read-only."),
    errno.ELOOP: (PathOutOfScope, "{path} goes through a link that cannot be followed inside the scope."),
    errno.EXDEV: (PathOutOfScope, "{path} leaves the scope's root through a link."),
    errno.ENAMETOOLONG: (InvalidRequest, "{path} is longer than the file system allows."),
    errno.EINVAL: (InvalidRequest, "The file system does not take {path} for this."),
    errno.EILSEQ: (InvalidRequest, "{path} is not a name this file system can hold."),
    errno.ENOSPC: (ExecutionFailed, "There is no space left for {path}. Free some space, then try again; nothing was changed."),
    errno.EDQUOT: (ExecutionFailed, "The disk quota is used up at {path}. Free some space, then try again; nothing was changed."),
    errno.EFBIG: (LimitExceeded, "{path} would be larger than the file system allows."),
    errno.EMFILE: (LimitExceeded, "The service has too many files open to open {path}. Try again when less is under way."),
    errno.ENFILE: (LimitExceeded, "The system has too many files open to open {path}. Try again later."),
    errno.EMLINK: (LimitExceeded, "{path} has as many links as the file system allows."),
    errno.ENOMEM: (LimitExceeded, "The system has no memory left to work on {path}."),
    errno.EBUSY: (Conflict, "{path} is in use by the system (a mount point, for example)."),
    errno.ETXTBSY: (Conflict, "{path} is a program that is running."),
    errno.EAGAIN: (Conflict, "{path} was being changed while it was opened. Try again."),
    errno.ESTALE: (Conflict, "{path} was replaced on its server while it was open. Try again."),
    errno.ENXIO: (InvalidRequest, "{path} is a device, socket or pipe, not a regular file."),
    errno.ENODEV: (InvalidRequest, "{path} is a device, not a regular file."),
    errno.EOPNOTSUPP: (ExecutionFailed, "The file system of {path} does not support this."),
    errno.EIO: (ExecutionFailed, "The disk reported an input or output error at {path}. Check the disk."),
}  # fmt: skip


def fault(error: OSError, path: str) -> LinkError:
    """The wire error for an OS error at `path` in the scope."""
    kind, sentence = FAULTS.get(error.errno or 0, (ExecutionFailed, "The system refused to work on {path}."))
    return kind(sentence.format(path=path), path=path, errno=errno.errorcode.get(error.errno or 0, "unknown"))

"""Copies single entries of a folder with everything that belongs to them."""

import errno

from computer_linker.providers.views.names import OVERLAY_ATTRIBUTES
from computer_linker.system import attributes, copy_range, os, set_attribute

NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_CHUNK = 1 << 20
_SMALL = 1 << 15
"""Read and written at once: holes and references save nothing."""
_EUID, _EGID = os.geteuid(), os.getegid()


def copy_link(source: int, name: str, target: int, new_name: str) -> None:
    """Copy a symbolic link with its times."""
    found = os.stat(name, dir_fd=source, follow_symlinks=False)
    os.symlink(os.readlink(name, dir_fd=source), new_name, dir_fd=target)
    os.utime(new_name, ns=(found.st_atime_ns, found.st_mtime_ns), dir_fd=target, follow_symlinks=False)


def copy_file(source: int, name: str, target: int, new_name: str, size: int) -> os.stat_result:
    """Copy a regular file of this size with mode, times and attributes. Returns its state after it was read."""
    opened = os.open(name, _FILE, dir_fd=source)
    try:
        made = os.open(new_name, NEW, 0o600, dir_fd=target)
        try:
            if size > _SMALL:
                _copy_bytes(opened, made, size)
            elif size:
                os.write(made, os.read(opened, size))
            found = os.fstat(opened)
            copy_metadata(opened, made, found)
            return found
        finally:
            os.close(made)
    finally:
        os.close(opened)


def link_file(source: int, name: str, target: int, new_name: str, mode: int) -> bool:
    """Give a file of a view that no program can reach a second name, without the marks of overlayfs.

    False, and nothing was done, for a file with rights or attributes that a kept file must not have.
    """
    if mode & 0o6000:
        return False
    # By the folder's descriptor; to open each file would cost more than all the rest.
    place = f"/proc/self/fd/{source}/{name}"
    found = os.listxattr(place, follow_symlinks=False)
    if not all(each.startswith("user.") for each in found):
        return False
    for each in found:
        if each.startswith(OVERLAY_ATTRIBUTES):
            os.removexattr(place, each, follow_symlinks=False)
    os.link(name, new_name, src_dir_fd=source, dst_dir_fd=target, follow_symlinks=False)
    return True


def _copy_bytes(source: int, target: int, size: int) -> None:
    """Copy a file without its holes, which would fill the disk."""
    at = 0
    while at < size:
        try:
            at = os.lseek(source, at, os.SEEK_DATA)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            break
        end = os.lseek(source, at, os.SEEK_HOLE)
        at += _copy_range(source, target, at, end)
        if at < end:
            break
    os.ftruncate(target, size)


def _copy_range(source: int, target: int, at: int, end: int) -> int:
    """Copy these bytes, by reference where the disk can. Returns how many there were."""
    start = at
    try:
        while at < end and (count := copy_range(source, target, at, min(end - at, _CHUNK * 64))):
            at += count
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.EOPNOTSUPP, errno.EINVAL):
            raise
        while at < end and (data := os.pread(source, min(end - at, _CHUNK), at)):
            at += os.pwrite(target, data, at)
    return at - start


def copy_metadata(source: int, target: int, found: os.stat_result) -> None:
    """Copy attributes, mode and times."""
    for name, value in attributes(source, without=OVERLAY_ATTRIBUTES).items():
        set_attribute(target, name, value)
    if _EUID == 0 and (found.st_uid, found.st_gid) != (_EUID, _EGID):
        # Only the superuser's programs can give a file to another user.
        os.fchown(target, found.st_uid, found.st_gid)
    # Without set-user-id bits: what runs with more rights than its caller needs the owner's own hand.
    os.fchmod(target, found.st_mode & 0o1777)
    os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns))

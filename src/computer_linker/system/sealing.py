"""Files without a name, and a copy of a program that cannot be changed before it runs: memfd and its seals are Linux's."""

import sys

from computer_linker.system import os

if sys.platform == "linux":
    import fcntl

    _SEALS = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL

    def nameless(name: str) -> int:
        """The descriptor of an empty file without a name."""
        return os.memfd_create(name, os.MFD_CLOEXEC)

    def new_copy(name: str) -> int | None:
        """The descriptor of an empty file in memory that can be sealed; None where there is none."""
        if not os.path.isdir("/proc/self/fd"):
            return None
        return os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)

    def sealed(copy: int) -> str:
        """Seal it, and return the path by which it runs: through our own descriptor, so that no name is looked up."""
        fcntl.fcntl(copy, fcntl.F_ADD_SEALS, _SEALS)
        return f"/proc/{os.getpid()}/fd/{copy}"

else:

    def nameless(name: str) -> int:
        """The descriptor of an empty file without a name."""
        import tempfile

        with tempfile.TemporaryFile() as file:
            return os.dup(file.fileno())

    def new_copy(name: str) -> int | None:
        """None: this system has no such file."""
        return None

    def sealed(copy: int) -> str:
        """Never called: there is no copy."""
        raise NotImplementedError

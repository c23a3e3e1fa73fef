"""The bubblewrap that a program inside the sandbox starts for a sandbox of its own, as Codex does for its commands.

A closed name is held by a mount, and only in the mount namespace that has it. A program with a user namespace of its own can
leave that one and rename what was closed, so commands can make none. Codex must make one for each of its commands, and these
commands none. So inside its sandbox the name of bubblewrap is a script that starts the real one with the filter of commands,
which bubblewrap applies once its own namespaces are made.
"""

import os
import shutil

from computer_linker.computer.facets.processes import Mount
from computer_linker.computer.local.linux.syscall_filters import namespace_filter
from computer_linker.errors import ProviderUnavailable
from computer_linker.providers.sandbox.new_root import NewRoot
from computer_linker.providers.sandbox.places import hold

_PLACE = "/.inner-sandbox"
_REAL, _FILTER = f"{_PLACE}/bwrap", f"{_PLACE}/filter"
_SCRIPT = f"""#!/bin/sh
# A descriptor that the caller has not passed.
for free in 9 8 7 6 5 4 3; do
    [ -e /proc/self/fd/$free ] || break
done
[ -e /proc/self/fd/$free ] && exit 126
eval "exec $free<{_FILTER}"
exec {_REAL} --add-seccomp-fd $free "$@"
"""


def real_inside(root: str) -> str:
    """The real bubblewrap, where the finished root lies at this path."""
    return f"{root}{_REAL}"


def confine_inner(root: NewRoot, bwrap: str, search_path: str) -> None:
    """Replace every bubblewrap that the program could find by the script."""
    real = hold(bwrap)
    if real is None:
        raise ProviderUnavailable("bubblewrap was removed.", program="bwrap", remedy="Install bubblewrap.")
    root.opened.append(real)
    rules = namespace_filter(namespaces=False, unix_sockets=True, other_sockets=True)
    root.show(2, real, _REAL, read_only=True)
    root.add(2, Mount("file", _FILTER, target=rules.decode("latin-1")))
    if not rules:
        # An architecture without a known filter: commands have none there either.
        return
    found = (shutil.which("bwrap", path=folder) for folder in search_path.split(os.pathsep) if folder)
    for path in dict.fromkeys((bwrap, *(os.path.realpath(each) for each in found if each))):
        root.add(7, Mount("file", path, target=_SCRIPT))

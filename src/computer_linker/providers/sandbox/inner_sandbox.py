"""The programs that an agent inside the sandbox starts by itself: bubblewrap for its commands, as Codex does, and git.

A closed name is held by a mount, and only in the mount namespace that has it. A program with a user namespace of its own can
leave that one and rename what was closed, so commands can make none. Codex must make one for each of its commands, and these
commands none. So inside its sandbox the name of bubblewrap is a script that starts the real one with the filter of commands,
which bubblewrap applies once its own namespaces are made.

Codex runs git in the working folder outside that sandbox, and git runs the programs that a repository's settings name as
content filters. So git is a script too: it starts the real one with that filter, and without the network, other processes,
the agent's folder and its keys.
"""

import re
import shutil
from collections.abc import Iterable, Mapping
from shlex import quote

from computer_linker.computer.facets.processes import Mount
from computer_linker.computer.local.linux.syscall_filters import namespace_filter
from computer_linker.errors import ProviderUnavailable
from computer_linker.providers.sandbox.new_root import NewRoot
from computer_linker.providers.sandbox.places import hold
from computer_linker.system import os

_PLACE = "/.inner-sandbox"
_REAL, _FILTER, _GIT = f"{_PLACE}/bwrap", f"{_PLACE}/filter", f"{_PLACE}/git"
_INSIDE = "COMPUTER_LINKER_INNER_SANDBOX"
"""Set for what runs in the inner sandbox, which can make no further one. What sets it itself is only kept from making one."""
_WITH_FILTER = f"""# A descriptor that the caller has not passed.
for free in 9 8 7 6 5 4 3; do
    [ -e /proc/self/fd/$free ] || break
done
[ -e /proc/self/fd/$free ] && exit 126
eval "exec $free<{_FILTER}"
exec {_REAL} --add-seccomp-fd $free --setenv {_INSIDE} 1"""
_SCRIPT = f"""#!/bin/sh
{_WITH_FILTER} "$@"
"""
_ALONE = "--dev-bind / / --tmpfs /proc --unshare-user --unshare-pid --unshare-net --unshare-ipc --cap-drop ALL --die-with-parent"
_KEYS = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)


def real_inside(root: str) -> str:
    """The real bubblewrap, where the finished root lies at this path."""
    return f"{root}{_REAL}"


def confine_inner(root: NewRoot, bwrap: str, env: Mapping[str, str], hides: Iterable[str]) -> None:
    """Replace every bubblewrap and git that the program could find by their scripts. `hides` are folders git must not see."""
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
    search_path = env.get("PATH", "")
    for path in dict.fromkeys((bwrap, *_found("bwrap", search_path))):
        root.add(7, Mount("file", path, target=_SCRIPT))
    gits = _found("git", search_path)
    git = hold(gits[0]) if gits else None
    if git is not None:
        root.opened.append(git)
        root.show(2, git, _GIT, read_only=True)
        for path in gits:
            root.add(7, Mount("file", path, target=_git_script(env, hides)))


def _found(program: str, search_path: str) -> list[str]:
    """The files that the name leads to, in the order in which they are found."""
    found = (shutil.which(program, path=folder) for folder in search_path.split(os.pathsep) if folder)
    return list(dict.fromkeys(os.path.realpath(each) for each in found if each))


def _git_script(env: Mapping[str, str], hides: Iterable[str]) -> str:
    hidden = "".join(f" --tmpfs {quote(path)}" for path in hides)
    keys = "".join(f" --unsetenv {quote(name)}" for name in env if _KEYS.search(name))
    return f"""#!/bin/sh
[ -n "${_INSIDE}" ] && exec {_GIT} "$@"
{_WITH_FILTER} {_ALONE}{hidden}{keys} -- {_GIT} "$@"
"""

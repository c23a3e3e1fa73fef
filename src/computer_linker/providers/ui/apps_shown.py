"""Previews of acts on an application: its name, its windows, and the files it is started with."""

import hashlib
import os
import stat
from collections.abc import Sequence

from anyio.to_thread import run_sync

from computer_linker.computer.base import Computer
from computer_linker.policy.digest import digest_of_parts
from computer_linker.providers.app_choice import running_app
from computer_linker.providers.ui.shown import SeenElement

_MAX_READ = 20_000_000
_MAX_LINE = 300


async def seen_app(computer: Computer, name: str, excluded: Sequence[str]) -> SeenElement:
    """The preview of a running application and all its windows, which an act on it affects."""
    app = await running_app(computer, name, excluded)
    windows = await computer.windows.list() if computer.capabilities().has("windows") else []
    own = sorted((one.id, one.title) for one in windows if one.id in app.windows)
    seen = SeenElement([f"the application {app.name} ({app.id})", *(f'its window "{title}"' for _, title in own[:20])])
    seen.holds["application"] = digest_of_parts(app.id, app.name, repr(sorted(app.pids)))
    seen.holds["windows"] = digest_of_parts(*sorted(app.windows), *(part for one in own for part in one))
    return seen


async def seen_start(computer: Computer, name: str, arguments: Sequence[str]) -> SeenElement:
    """The preview of a start. Files among the arguments are bound to their present content."""
    known = [app for app in await computer.apps.list() if name.lower() in (app.id.lower(), app.name.lower())]
    seen = SeenElement([f"start {', '.join(f'{app.name} ({app.id})' for app in known) or name}"])
    seen.holds["application"] = digest_of_parts(*(part for app in known for part in (app.id, app.name)))
    for given in arguments:
        path = given.removeprefix("file://")
        line, digest = await run_sync(_file, path) if path.startswith("/") else ("", "")
        seen.lines.append(f"with {given[:_MAX_LINE]}{line}")
        if digest:
            seen.holds[given[:_MAX_LINE]] = digest
    return seen


def _file(path: str) -> tuple[str, str]:
    """A file's description and digest."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ", which cannot be read here", "not readable"
    with open(fd, "rb") as file:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            return ", which is no plain file", digest_of_parts(str(found.st_dev), str(found.st_ino))
        if found.st_size > _MAX_READ:
            facts = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
            return f" ({found.st_size} bytes; too large to read, held by its size and time)", digest_of_parts(
                repr(facts)
            )
        digest = hashlib.sha256(file.read(_MAX_READ + 1)).hexdigest()
        return f" ({found.st_size} bytes, sha256 {digest})", digest

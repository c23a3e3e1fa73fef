"""Change a client's settings file: planned and shown first, backed up, replaced whole, never half."""

import difflib
import stat
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from computer_linker.service.clients.form import Client, Rules, User
from computer_linker.service.clients.jsonc import CannotEdit, Jsonc
from computer_linker.system import os, sync

_MAX_BYTES = 32 * 1024 * 1024
_LONGEST_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Change:
    """The change of one file. `before` and `after` are None where there is no file."""

    file: Path
    before: bytes | None
    after: bytes | None

    @property
    def is_needed(self) -> bool:
        return self.before != self.after

    def diff(self, hide: str | None = None) -> str:
        """The change as a unified diff, with minimal context: other entries may hold secrets."""
        lines = difflib.unified_diff(
            _lines(self.before), _lines(self.after), f"{self.file} (now)", f"{self.file} (then)", n=1, lineterm=""
        )
        text = "\n".join(line if len(line) <= _LONGEST_SHOWN else line[:_LONGEST_SHOWN] + " ..." for line in lines)
        return text.replace(hide, "YOUR_OWNER_TOKEN") if hide else text


def plan_setup(client: Client, user: User, entry: dict[str, Any]) -> Change:
    """Plan to add our entry. Raises CannotEdit for a file that cannot be changed safely."""
    file = _real(client.file(user))
    before = _read(file)
    text = _text(before)
    if client.document.get(text, client.path) == entry:
        return Change(file, before, before)
    after = client.document.put(text, client.path, entry)
    if client.document.get(after, client.path) != entry:
        raise CannotEdit("the entry would not be read back as it was written")
    return Change(file, before, after.encode())


def plan_removal(client: Client, user: User) -> Change:
    """Plan to remove every entry of ours; a file that is then empty is deleted."""
    file = _real(client.file(user))
    before = _read(file)
    if before is None:
        return Change(file, None, None)
    after = _text(before)
    for path in client.paths(after).values():
        after = client.document.drop(after, path)
    if client.paths(after):
        raise CannotEdit("the entry would still be there")
    return Change(file, before, before if after.encode() == before else _unless_empty(after))


def plan_rules(rules: Rules, user: User, *, present: bool) -> Change:
    """Plan to add our permission rules to the client's list, or to remove them."""
    file = _real(rules.file(user))
    before = _read(file)
    text, editor = _text(before), Jsonc()
    found = editor.get(text, rules.path)
    if not isinstance(found, list | None):
        raise CannotEdit(f"`{'.'.join(rules.path)}` of {file} is not a list")
    others = [rule for rule in found or [] if rule not in rules.allow]
    wanted = [*(found or []), *(rule for rule in rules.allow if rule not in (found or []))] if present else others
    if wanted == (found or []):
        return Change(file, before, before)
    after = editor.put(text, rules.path, wanted) if wanted else editor.drop(text, rules.path)
    return Change(file, before, _unless_empty(after))


def present_in(client: Client, user: User) -> list[str | None]:
    """Return the projects that have our entry (None is all projects); empty when there is no entry. Raises CannotEdit."""
    before = _read(_real(client.file(user)))
    return [] if before is None else list(client.paths(_text(before)))


def make(change: Change) -> Path | None:
    """Write the change; return the backup's path, None when there was nothing to back up."""
    if not change.is_needed:
        return None
    if _read(change.file) != change.before:
        raise CannotEdit("it was changed by something else just now; try again")
    backup = None if change.before is None else _back_up(change.file, change.before)
    if change.after is None:
        change.file.unlink()
    else:
        _replace(change.file, change.after)
    return backup


def _unless_empty(text: str) -> bytes | None:
    return None if "".join(text.split()) in ("", "{}") else text.encode()


def _real(file: Path) -> Path:
    """Resolve a link to the file itself, so that a link into a dotfiles folder stays a link."""
    return Path(os.path.realpath(file))


def _read(file: Path) -> bytes | None:
    try:
        found = file.stat()
        if not stat.S_ISREG(found.st_mode) or found.st_size > _MAX_BYTES:
            raise CannotEdit("it is not a plain file of a sensible size")
        return file.read_bytes()
    except FileNotFoundError:
        return None


def _text(content: bytes | None) -> str:
    try:
        return (content or b"").decode("utf-8")
    except UnicodeDecodeError:
        raise CannotEdit("it is not UTF-8 text") from None


def _lines(content: bytes | None) -> list[str]:
    return _text(content).splitlines()


def _back_up(file: Path, content: bytes) -> Path:
    """A copy beside the file, as private as the file: settings of clients hold keys."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    for number in range(1, 100):
        backup = file.with_name(f"{file.name}.{stamp}{f'-{number}' if number > 1 else ''}.bak")
        try:
            handle = os.open(backup, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            continue
        with os.fdopen(handle, "wb") as copy:
            copy.write(content)
        return backup
    raise CannotEdit("there are too many backups of this second beside it")


def _replace(file: Path, content: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    mode = stat.S_IMODE(file.stat().st_mode) if file.exists() else 0o600
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    fresh = Path(name)
    try:
        with os.fdopen(handle, "wb") as new:
            new.write(content)
            new.flush()
            sync(new.fileno())
        fresh.chmod(mode)
        fresh.replace(file)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise

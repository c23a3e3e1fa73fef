"""Creating a folder, and changing the mode, time and attributes of one."""

import errno
from base64 import b64encode

from computer_linker.computer.facets.files import Changed, Inverse, MakeFolder, Stat
from computer_linker.computer.local.portable.files.keep import remaking, unmaking
from computer_linker.computer.local.portable.files.open import FOLDER, OpenedParent
from computer_linker.computer.local.portable.files.stage import Staged
from computer_linker.errors import AlreadyExists, InvalidRequest
from computer_linker.system import attributes, os, remove_attribute, set_attribute

_MODE = 0o1777
_OF_THE_USER = "user."


class StagedFolder(Staged):
    """A folder to create, or to give other facts."""

    def __init__(self, place: OpenedParent, change: MakeFolder) -> None:
        super().__init__(place, Changed(change.path, "created"))
        self.wanted = change
        self.before: MakeFolder | None = None
        """The facts of a folder that exists, where they become others."""

    def prepare(self) -> None:
        if not all(name.startswith(_OF_THE_USER) for name, _ in self.wanted.attributes):
            raise InvalidRequest("Only attributes of the user are set.", path=self.result.path.shown)
        found = self.place.stat()
        if found is None:
            self.steps = [unmaking(self.place.path), *self.unmaking_steps()]
            return
        if found.type != "directory":
            shown = self.result.path.shown
            raise AlreadyExists(f"{shown} already exists and is not a folder.", path=shown)
        self.before = self._replaced(found)
        if self.before is not None:
            self.steps = [_restoring(self.before)]
            self.result.action = "modified"
            return
        self.result.action = "unchanged"
        self.result.is_confirmed = True

    def _replaced(self, found: Stat) -> MakeFolder | None:
        """Those of the present facts that become others."""
        wanted, mode, modified = self.wanted, found.mode & _MODE, found.modified_ns
        old_mode = mode if wanted.mode not in (None, mode) else None
        # Also where it is the present one: changes of names before this one in the batch make it another.
        old_modified = modified if wanted.modified_ns is not None else None
        now = self._attributes() if wanted.attributes else {}
        old = tuple((name, now.get(name)) for name, value in wanted.attributes if now.get(name) != value)
        if old_mode is None and old_modified is None and not old:
            return None
        return MakeFolder(self.place.path, mode=old_mode, modified_ns=old_modified, attributes=old)

    def commit(self) -> None:
        if self.result.action == "unchanged":
            return
        if self.before is None:
            self.make_missing()
            os.mkdir(self.place.name, dir_fd=self.place.folder)
            self.made.append((os.dup(self.place.folder), self.place.name))
        self._set(self.wanted)
        found, wanted = self.place.stat(), self.wanted
        self.result.is_confirmed = (
            found is not None
            and found.type == "directory"
            and wanted.mode in (None, found.mode & _MODE)
            and wanted.modified_ns in (None, found.modified_ns)
        )

    def undo(self) -> None:
        if self.before is not None:
            self._set(self.before)
        self.unmake()

    def _attributes(self) -> dict[str, bytes]:
        opened = self._opened()
        try:
            return attributes(opened)
        finally:
            os.close(opened)

    def _opened(self) -> int:
        return os.open(self.place.name, FOLDER | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.place.folder)

    def _set(self, facts: MakeFolder) -> None:
        if facts.mode is None and facts.modified_ns is None and not facts.attributes:
            return
        opened = self._opened()
        try:
            for name, value in facts.attributes:
                if value is None:
                    _without(opened, name)
                else:
                    set_attribute(opened, name, value)
            if facts.mode is not None:
                os.fchmod(opened, facts.mode)
            if facts.modified_ns is not None:
                os.utime(opened, ns=(facts.modified_ns, facts.modified_ns))
        finally:
            os.close(opened)


def _without(folder: int, name: str) -> None:
    try:
        remove_attribute(folder, name)
    except OSError as error:
        if error.errno not in (errno.ENODATA, errno.EOPNOTSUPP):
            raise


def _restoring(facts: MakeFolder) -> Inverse:
    step = remaking(facts.path)
    if facts.mode is not None:
        step["mode"] = facts.mode
    if facts.modified_ns is not None:
        step["modified"] = facts.modified_ns
    if facts.attributes:
        step["attributes"] = {
            name: None if value is None else b64encode(value).decode() for name, value in facts.attributes
        }
    return step

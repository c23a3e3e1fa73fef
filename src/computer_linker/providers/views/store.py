"""The stored views: for each a private folder with the changes, and a record of what it is for."""

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Literal, Self

from computer_linker.errors import Conflict, LimitExceeded, NotFound
from computer_linker.model.ids import new_ulid
from computer_linker.model.principal import Principal, account_of
from computer_linker.model.times import shown_ns
from computer_linker.providers.own_folders import disk_use, remove_folder
from computer_linker.providers.views.probe import can_overlay, is_released
from computer_linker.services import Services
from computer_linker.system import os

MAX_VIEWS = 200
MAX_OF_ONE = 50
"""Views of one principal."""
MAX_AGE_S = 7 * 86_400
MAX_BYTES = 8 << 30
"""Disk space of one view."""
MAX_ALL_BYTES = 32 << 30
"""Disk space of all views together, of which one principal has half: above it none is made, and no program starts in one."""
MANY = 500
"""From so many changed names on it is worth asking the kernel whether they can be put in place without a copy."""
_LARGE = 64 << 20
"""And from so many bytes on."""
_MAX_OPERATIONS = 1000
_ULID = 26
_RECORD = "view.json"
Kind = Literal["overlay", "copy"]
Network = Literal["closed", "some", "open"]
"""No host can be reached; some, each connection to which is in the history; or all, and which is not known."""
NETWORKS: tuple[Network, ...] = ("closed", "some", "open")
"""By the width of a scope's policy."""


@dataclass(frozen=True, slots=True)
class View:
    """One view: whose it is, and the folders it covers, in the order of the scope's roots."""

    id: str
    scope_id: str
    principal: str
    op: str
    command: str
    """The masked command line that it was made for."""
    roots: tuple[str, ...]
    created_at: str
    base_ns: int
    """The change time that an entry of the folders must not be newer than: it was changed elsewhere since."""
    shared: str = ""
    """The session or the batch whose calls find it again; empty for a view of its own."""
    kind: Kind = "overlay"
    """How the changes are held: over the folder, or in a copy of it where the kernel has no overlay for it."""
    operations: tuple[str, ...] = ()
    """The operations that ran programs in it, the newest last."""
    filled_ns: int = 0
    """When the copy was complete."""
    stored: int = 0
    """Bytes on disk, as of the end of the last program."""
    changed: int | None = None
    """How many names it would change, as of then; None where that is not known."""
    network: Network | None = None
    """What the network was to its programs: the widest of all of them."""
    is_sealed: bool = False
    """Its files are being put in place themselves: no program runs in it again, whatever becomes of that."""


@dataclass(frozen=True, slots=True)
class NewView:
    """A view to be made."""

    scope_id: str
    principal: Principal
    roots: Sequence[str]
    op: str
    command: str
    shared: str
    operation: str
    network: Network


@dataclass(slots=True)
class Views:
    """All views of one state folder. What reads or changes the folder blocks: call it in a worker thread."""

    folder: Path
    max_bytes: int = MAX_BYTES
    max_all_bytes: int = MAX_ALL_BYTES
    probe: Callable[[Path, Sequence[str]], bool] = can_overlay
    is_released: Callable[[Path, Sequence[str]], bool] = is_released
    many: int = MANY
    _running: dict[str, str] = field(default_factory=dict)
    """The views that are in use, with the command line that runs there; changed by the event loop alone."""
    _changing: threading.Lock = field(default_factory=threading.Lock)
    """Held while views are created or removed, so that none is taken for the rest of a crash."""
    _filling: dict[str, View] = field(default_factory=dict)
    """The views whose folders are being copied, by id; they have no record yet."""
    _is_swept: bool = False
    """True when what a crash left of kept views was removed, and what it left in others was measured."""
    _probed: dict[tuple[int, ...], bool] = field(default_factory=dict)
    """Whether overlayfs can cover folders on these devices."""

    @classmethod
    def open(cls, services: Services) -> Self:
        return cls(services.home / "views")

    def create(self, new: NewView, fill: Callable[[Path], None] | None = None) -> View:
        """Create a view with no change in it; `fill` copies the folders into it where it is to be a copy.

        Returns the newest one that the session or batch shares already, where there is one. Raises Conflict while that is
        being copied, and LimitExceeded when this principal has too many, or all hold too much.
        """
        with self._changing:
            self._drop_old()
            shared = self._shared_by(new)
            if shared is not None:
                return shared
            view = self._create(new)
            if fill is None:
                self._save(view)
                return view
            self._filling[view.id] = view
        try:
            fill(self.folder / view.id)
            view = replace(view, kind="copy", filled_ns=self._clock(view))
            self._save(view)
        except BaseException:
            remove_folder(self.folder / view.id)
            raise
        finally:
            del self._filling[view.id]
        return view

    def _clock(self, view: View) -> int:
        """A time later than that of everything copied so far, by the file system's own clock, which goes in steps."""
        mark = self.folder / view.id / "mark"
        mark.touch()
        copied = now = mark.stat().st_ctime_ns
        while now <= copied:
            time.sleep(0.001)
            mark.touch()
            now = mark.stat().st_ctime_ns
        return now

    def _create(self, new: NewView) -> View:
        known = self._all()
        mine = [view for view in known if account_of(view.principal) == account_of(new.principal.id)]
        if len(mine) >= MAX_OF_ONE or len(known) >= MAX_VIEWS:
            raise LimitExceeded(
                "There are too many views. Keep or drop one first: view.list shows them.", views=len(mine)
            )
        self._refuse_full(known, new.principal.id)
        self.folder.mkdir(mode=0o700, exist_ok=True)
        view_id = new_ulid()
        place = self.folder / view_id
        place.mkdir(mode=0o700)
        for index, root in enumerate(new.roots):
            for name in ("upper", "work", "base"):
                (place / str(index) / name).mkdir(mode=0o700, parents=True)
            # Programs see these as the folder's own. The folder above them is closed to other users.
            found, upper = Path(root).stat(), place / str(index) / "upper"
            upper.chmod(found.st_mode & 0o1777 | 0o700)
            os.utime(upper, ns=(found.st_atime_ns, found.st_mtime_ns))
        # By the file system's own clock, which also sets the times it is compared with.
        base_ns = place.stat().st_ctime_ns
        return View(
            view_id, new.scope_id, new.principal.id, new.op, new.command, tuple(new.roots), shown_ns(base_ns), base_ns,
            new.shared, operations=(new.operation,), network=new.network,
        )  # fmt: skip

    def _save(self, view: View) -> None:
        record = self.folder / view.id / f".{_RECORD}"
        record.write_text(json.dumps(asdict(view)))
        record.rename(record.with_name(_RECORD))

    def _refuse_full(self, known: Sequence[View], principal: str) -> None:
        """Refuse more where all views hold too much, or those of this principal more than half of that."""
        mine = [view for view in known if account_of(view.principal) == account_of(principal)]
        for views, whose, most in ((known, "All", self.max_all_bytes), (mine, "Your", self.max_all_bytes // 2)):
            if sum(view.stored for view in views) > most:
                raise LimitExceeded(
                    f"{whose} views together hold more than {most >> 20} MB. Keep or drop one first.", maxBytes=most
                )

    def has_overlay(self, roots: Sequence[str]) -> bool:
        """Whether overlayfs can cover these folders; tried once for each file system."""
        self.folder.mkdir(mode=0o700, exist_ok=True)
        devices = tuple(Path(place).stat().st_dev for place in (str(self.folder), *roots))
        with self._changing:
            # Its folder has no record, like the rest of a crash.
            if devices not in self._probed:
                self._probed[devices] = self.probe(self.folder, roots)
            return self._probed[devices]

    def _shared_by(self, new: NewView) -> View | None:
        """The newest view that the session or batch shares already; None when it has none, or shares none."""
        if not new.shared:
            return None
        wanted = (new.shared, new.scope_id, new.principal.id)
        known = {view.id: view for view in (*self._all(), *self._filling.values())}
        mine = [key for key, view in known.items() if (view.shared, view.scope_id, view.principal) == wanted]
        if not mine:
            return None
        newest = max(mine)
        if newest in self._filling:
            raise Conflict("The folder is still being copied into this view. Wait for its end.", viewId=newest)
        return known[newest]

    def started(self, view: View, operation_id: str, network: Network) -> tuple[View, tuple[int, ...]]:
        """Record that an operation runs a program in the view, and hold it. Raises LimitExceeded when it is full.

        Raises Conflict where it was being kept when the service ended: its files may be the folder's own.
        """
        if view.is_sealed:
            raise Conflict(
                "The service ended while this view was being kept. Keep it again or drop it.", viewId=view.id
            )
        if view.operations[-1:] == (operation_id,):
            # Created by it.
            return view, self.hold(view)
        if view.stored > self.max_bytes:
            raise LimitExceeded(
                f"The view holds more than {self.max_bytes >> 20} MB. Keep or drop it.", maxBytes=self.max_bytes
            )
        with self._changing:
            self._refuse_full([each for each in self._all() if each.id != view.id], view.principal)
            widest = max(view.network or network, network, key=NETWORKS.index)
            operations = (*view.operations, operation_id)[-_MAX_OPERATIONS:]
            noted = replace(view, operations=operations, network=widest)
            self._save(noted)
        return noted, self.hold(noted)

    def measure(self, view: View, changed: int | None) -> None:
        """Record the bytes that the view holds on disk now, and how many names it would change."""
        stored = disk_use(self.folder / view.id)
        with self._changing:
            found = self._read(view.id)
            if found is not None:
                self._save(replace(found, stored=stored, changed=changed))

    def seal(self, view: View) -> bool:
        """Close a `busy` view with much in it to programs, if none can reach it any more: its own files can then be kept."""
        is_much = (view.changed or 0) >= self.many or view.stored >= _LARGE
        place = self.folder / view.id
        uppers = [str(place / str(index) / "upper") for index in range(len(view.roots))]
        if view.kind != "overlay" or not is_much or not self.is_released(place, uppers):
            return False
        self._set_sealed(view, is_sealed=True)
        return True

    def unseal(self, view: View) -> None:
        """Open it again when none of its files was put in place."""
        self._set_sealed(view, is_sealed=False)

    def _set_sealed(self, view: View, *, is_sealed: bool) -> None:
        with self._changing:
            found = self._read(view.id)
            if found is not None:
                self._save(replace(found, is_sealed=is_sealed))

    def find(self, view_id: str, scope_id: str, caller: Principal) -> View:
        """Find a view of this scope. Raises NotFound, with the same message for another principal's."""
        is_id = len(view_id) == _ULID and view_id.isascii() and view_id.isalnum()
        view = self._read(view_id) if is_id else None
        if view is None or view.scope_id != scope_id or not caller.owns(view.principal):
            raise _no_such_view()
        return view

    def listed(self, scope_id: str, caller: Principal) -> list[View]:
        """The caller's views in this scope, the newest first."""
        with self._changing:
            self._drop_old()
        mine = [view for view in self._all() if view.scope_id == scope_id and caller.owns(view.principal)]
        return sorted(mine, key=lambda view: view.id, reverse=True)

    def hold(self, view: View) -> tuple[int, ...]:
        """Descriptors of the folders that take the changes of each root. Raises NotFound when it is gone."""
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        with contextlib.ExitStack() as opened:
            held: list[int] = []
            for index in range(len(view.roots)):
                try:
                    held.append(os.open(self.folder / view.id / str(index), flags))
                except FileNotFoundError:
                    raise _no_such_view() from None
                opened.callback(os.close, held[-1])
            opened.pop_all()
        return tuple(held)

    def is_running(self, view_id: str) -> bool:
        """True while a program runs in the view, or it is kept or dropped."""
        return view_id in self._running

    def program_of(self, view_id: str) -> str | None:
        """The masked command line of the program that runs in the view."""
        return self._running.get(view_id) or None

    def begin(self, view: View, command: str = "") -> None:
        """Note that a program starts in the view. Raises Conflict when one runs: two on one overlay are undefined."""
        if self.is_running(view.id):
            raise still_runs(view)
        self._running[view.id] = command

    def end(self, view: View) -> None:
        """Note that the program has ended."""
        self._running.pop(view.id, None)

    @contextlib.contextmanager
    def busy(self, view: View) -> Iterator[None]:
        """Keep programs from starting in the view meanwhile. Raises Conflict when one runs."""
        self.begin(view)
        try:
            yield
        finally:
            self.end(view)

    def drop(self, view: View) -> bool:
        """Remove a view that is `busy` with everything in it; True when it is gone."""
        place = self.folder / view.id
        with self._changing:
            if place.exists():
                # Without its record it is no view any more, whatever happens to the rest.
                (place / _RECORD).unlink(missing_ok=True)
                remove_folder(place)
            return not place.exists()

    def dissolve(self, view: View) -> Path:
        """End a view that is `busy` and whose changes are in place. Returns what is to be removed of it, which takes a while."""
        place, gone = self.folder / view.id, self._gone / view.id
        with self._changing:
            self._gone.mkdir(mode=0o700, exist_ok=True)
            (place / _RECORD).unlink(missing_ok=True)
            return place.rename(gone)

    @property
    def _gone(self) -> Path:
        """Where kept views are removed."""
        return self.folder.with_name(f"{self.folder.name}-kept")

    def _drop_old(self) -> None:
        """Remove views that are too old, and what a crash left of dropped ones."""
        is_first, self._is_swept = not self._is_swept, True
        if is_first:
            for place in self._gone.iterdir() if self._gone.exists() else ():
                remove_folder(place)
        if not self.folder.exists():
            return
        for place in list(self.folder.iterdir()):
            is_old = time.time_ns() > self.expires_ns(place.name)
            is_used = self.is_running(place.name) or place.name in self._filling
            if (is_old or not (place / _RECORD).exists()) and not is_used:
                remove_folder(place)
        for view in self._all() if is_first else ():
            if view.changed is None and not self.is_running(view.id):
                # The service ended before its program did: what that left counts for the bounds.
                self._save(replace(view, stored=disk_use(self.folder / view.id)))

    def expires_ns(self, view_id: str) -> int:
        """When a view is too old: its folder changes with each program that runs in it."""
        return (self.folder / view_id).stat().st_mtime_ns + MAX_AGE_S * 10**9

    def _all(self) -> list[View]:
        places = self.folder.iterdir() if self.folder.exists() else ()
        return [view for place in places if (view := self._read(place.name)) is not None]

    def _read(self, view_id: str) -> View | None:
        try:
            value = json.loads((self.folder / view_id / _RECORD).read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            return None
        return View(**{**value, "roots": tuple(value["roots"]), "operations": tuple(value.get("operations", ()))})


def still_runs(view: View) -> Conflict:
    """The refusal of what a program that runs in the view stands against."""
    return Conflict("A program still runs in this view. Wait for its end, or stop it first.", viewId=view.id)


def _no_such_view() -> NotFound:
    return NotFound("There is no such view: it was kept or dropped, or is too old. view.list shows them.")

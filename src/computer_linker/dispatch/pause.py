"""The owner's pause: every client is refused until it ends. It is stored in a file, so it outlives the service."""

import json
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from computer_linker.config.store import write_whole
from computer_linker.errors import Aborted, LinkError, Paused
from computer_linker.model.principal import Principal
from computer_linker.model.times import shown_s

FILE_NAME = "paused.json"
HALTED_NAME = "desktop-halted"
"""The file that is there while the desktop is halted."""


@dataclass(frozen=True, slots=True)
class Pausing:
    """Since when, and until when; without an end until the owner ends it."""

    since: float
    until: float | None


class Pause:
    """Refuses every principal but the owner while it lasts."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._now = _read(home)
        self._changing = threading.Lock()

    @property
    def now(self) -> Pausing | None:
        """The pause that is in force."""
        found = self._now
        if found is not None and found.until is not None and found.until <= time.time():
            with self._changing:
                # Another pause may have begun meanwhile.
                if self._now is found:
                    self._end()
        return self._now

    def begin(self, seconds: float | None) -> Pausing:
        """Pause from now on; for so long, when a time is given. Waits for the disk, so it runs in a thread."""
        now = time.time()
        begun = Pausing(now, None if seconds is None else now + seconds)
        with self._changing:
            self._now = begun
            write_whole(self._home, FILE_NAME, json.dumps(asdict(begun)).encode())
        return begun

    def end(self) -> bool:
        """End the pause; False when there was none."""
        with self._changing:
            return self._end()

    def _end(self) -> bool:
        was = self._now is not None
        self._now = None
        (self._home / FILE_NAME).unlink(missing_ok=True)
        return was

    def check(self, principal: Principal) -> None:
        """Raise Paused for a client while the pause lasts."""
        if self._now is None or principal.is_owner or (now := self.now) is None:
            return
        until = "until the owner ends the pause" if now.until is None else f"until {shown_s(now.until)}"
        raise Paused(
            f"The owner of this computer has paused every client, {until}. Nothing was done.",
            until=None if now.until is None else shown_s(now.until),
            hint="Wait, or ask the owner: computer-linker unpause.",
        )


STOPPED = "stopped"
"""Rule of a call that the owner stopped before anything began."""


def stopped_by_pause(done: str | None) -> LinkError:
    """The failure of a call that the owner stopped with a pause. `done` is what it had done; None when nothing had begun."""
    if done is None:
        return Paused("The owner of this computer has paused every client while the call waited. Nothing was done.")
    return Aborted(
        f"The owner of this computer has paused every client and stopped this call while it ran. {done}",
        effect="unverifiable",
    )


def stopped_alone(done: str | None) -> LinkError:
    """The failure of a call that the owner stopped by itself. `done` is as above."""
    if done is None:
        return Aborted("The owner of this computer has stopped this call. Nothing was done.", rule=STOPPED)
    return Aborted(
        f"The owner of this computer has stopped this call. {done}",
        effect="unverifiable",
    )


def pause_in_force(home: Path) -> Pausing | None:
    """The pause of a state folder, for those who only look; nothing is changed there."""
    found = _read(home)
    return None if found is None or (found.until is not None and found.until <= time.time()) else found


def is_desktop_halted(home: Path) -> bool:
    """True while the owner has halted the desktop."""
    return (home / HALTED_NAME).exists()


def _read(home: Path) -> Pausing | None:
    try:
        return Pausing(**json.loads((home / FILE_NAME).read_bytes()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError):
        # A pause that cannot be read is still one: the owner asked for it.
        return Pausing(time.time(), None)

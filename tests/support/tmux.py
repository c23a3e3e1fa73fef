"""A real terminal of a given size: tmux on a server of its own, its screen as text, and keys as a person presses them."""

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.waiting import wait_for

NAME = "tests"


def program() -> str | None:
    return shutil.which("tmux")


@dataclass(frozen=True)
class Terminal:
    """One tmux session with one program in it."""

    socket: Path

    def _tmux(self, *words: str) -> str:
        done = subprocess.run(
            [program() or "tmux", "-S", str(self.socket), *words], capture_output=True, text=True, timeout=30, check=False
        )  # fmt: skip
        return done.stdout

    @property
    def screen(self) -> str:
        """What is on the screen, without its trailing spaces."""
        return self._tmux("capture-pane", "-p", "-t", NAME)

    @property
    def is_open(self) -> bool:
        return bool(self._tmux("list-sessions"))

    @property
    def pid(self) -> int:
        """The program's process."""
        return int(self._tmux("display-message", "-p", "-t", NAME, "#{pane_pid}"))

    def press(self, *keys: str) -> None:
        """Press keys by tmux's names, one after the other."""
        for key in keys:
            self._tmux("send-keys", "-t", NAME, key)

    def resize(self, columns: int, rows: int) -> None:
        self._tmux("resize-window", "-t", NAME, "-x", str(columns), "-y", str(rows))

    def press_until(self, key: str, text: str, within_s: float = 6) -> None:
        """Press a key until a text comes, which at first may not be taken; each press gets a while to be drawn."""
        for _ in range(20):
            self.press(key)
            try:
                wait_for(lambda: text in self.screen, seconds=within_s, step_s=0.1)
            except AssertionError:
                continue
            return
        raise AssertionError(f"{key} brought no {text!r}; the screen is:\n{self.screen}")

    def until(self, *texts: str, without: str | None = None) -> str:
        """The screen, once all these texts are on it."""

        def found() -> str:
            screen = self.screen
            has_all = all(text in screen for text in texts) and (without is None or without not in screen)
            return screen if has_all else ""

        try:
            return wait_for(found, step_s=0.05)
        except AssertionError:
            raise AssertionError(f"{texts} (without {without!r}) did not come; the screen is:\n{self.screen}") from None


@contextmanager
def terminal(
    folder: Path, command: list[str], env: Mapping[str, str], columns: int = 80, rows: int = 24
) -> Iterator[Terminal]:
    """A terminal that runs the command, ended with it."""
    folder.mkdir(parents=True, exist_ok=True)
    # tmux refuses a socket path above 107 bytes.
    shown = Terminal(Path(os.path.relpath(folder / "tmux")) if len(str(folder)) > 90 else folder / "tmux")
    given = {**env, "TERM": "screen-256color", "LANG": "C.UTF-8"}
    start = [program() or "tmux", "-S", str(shown.socket), "-f", "/dev/null", "new-session", "-d", "-s", NAME]
    size = ["-x", str(columns), "-y", str(rows)]
    subprocess.run([*start, *size, shlex.join(command)], env=given, check=True, timeout=30)
    try:
        yield shown
    finally:
        shown._tmux("kill-server")

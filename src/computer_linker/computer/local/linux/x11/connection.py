"""One connection to an X server, used by one thread at a time, opened on first use and again after it was lost."""

import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from anyio import to_thread

from computer_linker.computer.local.linux.halting import OneAtATime
from computer_linker.errors import (
    ExecutionFailed,
    LinkError,
    NotFound,
    OsPermissionRequired,
    ProviderUnavailable,
)
from computer_linker.extras import remedy

if TYPE_CHECKING:
    from Xlib.display import Display

T = TypeVar("T")
_CONNECT_S = 2.0


class Connection:
    """Runs jobs against the display. Asynchronous X errors are raised by the job that caused them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._display: Display | None = None
        self._late_errors: list[Any] = []
        self._work = OneAtATime()

    async def run(self, work: "Callable[[Display], T]") -> T:
        """Run `work(display)` in a thread; a cancelled caller returns once the job has stopped sending presses."""
        return await self._work.run(lambda: self._worked(work))

    async def aclose(self) -> None:
        """Close the connection; the next use opens another."""
        await to_thread.run_sync(self._close)

    def _worked(self, work: "Callable[[Display], T]") -> T:
        from Xlib.error import ConnectionClosedError, XError

        display = self._opened()
        self._late_errors.clear()
        try:
            result = work(display)
        except (ConnectionClosedError, BrokenPipeError, ConnectionError) as error:
            self._drop()
            raise ProviderUnavailable("The X server closed the connection. Is the desktop still running?") from error
        except XError as error:
            raise fault(error) from error
        if self._late_errors:
            raise fault(self._late_errors[0])
        return result

    def _opened(self) -> "Display":
        if self._display is None:
            self._display = open_display(self.name)
            self._display.set_error_handler(self._late)
        return self._display

    def _late(self, error: Any, request: Any) -> None:
        self._late_errors.append(error)

    def _drop(self) -> None:
        display, self._display = self._display, None
        if display is not None:
            close_display(display)

    def _close(self) -> None:
        with self._work.lock:
            display, self._display = self._display, None
            if display is not None:
                close_display(display)


def open_display(name: str) -> "Display":
    """Connect to a display.

    Raises:
        ProviderUnavailable: python-xlib is not installed or no server answers.
        OsPermissionRequired: the server refused us.
    """
    try:
        from Xlib.display import Display
        from Xlib.error import DisplayConnectionError, DisplayNameError, XauthError
    except ImportError as error:
        raise ProviderUnavailable(f"X11 needs python-xlib. {remedy('desktop')}") from error
    _check_listening(name)
    try:
        return Display(name)
    except DisplayConnectionError as error:
        if "uthori" in str(error) or "No protocol specified" in str(error):
            raise OsPermissionRequired("The X server refused the connection. Run as the desktop's user.") from error
        raise ProviderUnavailable(f"No X server answers on display {name}.") from error
    except (DisplayNameError, XauthError, OSError) as error:
        raise ProviderUnavailable(f"The X display {name!r} cannot be opened.") from error


def _check_listening(name: str) -> None:
    """Refuse a local display without a server quickly. (python-xlib would leave its socket open.)"""
    number = name.removeprefix(":").partition(".")[0]
    if not name.startswith(":") or not number.isdigit():
        raise ProviderUnavailable(f"The X display {name[:80]!r} is not one of this machine, such as :0.")
    for address in (f"\0/tmp/.X11-unix/X{number}", f"/tmp/.X11-unix/X{number}"):  # noqa: S108  # where X servers listen
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(_CONNECT_S)
            try:
                probe.connect(address)
            except OSError:
                continue
            return
    raise ProviderUnavailable(f"No X server answers on display {name}.")


def close_display(display: "Display") -> None:
    """Close a connection that may already be lost."""
    from Xlib.error import ConnectionClosedError

    try:
        display.close()
    except (ConnectionClosedError, OSError):
        return


def fault(error: Any) -> LinkError:
    """The wire error for an X error."""
    from Xlib import error as x

    match error:
        case x.BadWindow() | x.BadDrawable():
            return NotFound("There is no such window any more.")
        case x.BadAccess():
            return OsPermissionRequired("The X server does not allow this.")
        case x.BadMatch():
            return ExecutionFailed("The window cannot do this now; it may be minimized.")
        case _:
            return ExecutionFailed(f"The X server reported {type(error).__name__}.")

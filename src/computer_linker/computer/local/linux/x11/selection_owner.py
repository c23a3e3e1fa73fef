"""Owning an X11 selection: a thread that serves paste requests for as long as the selection is ours."""

import os
import queue
import select
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from computer_linker.computer.local.linux.x11.connection import close_display, open_display
from computer_linker.errors import ExecutionFailed

if TYPE_CHECKING:
    from Xlib.display import Display

_PIECE = 192 * 1024
"""python-xlib cannot send more than 256 KB in one request."""
_QUIET_S = 0.03
_START_S = 5.0
Forms = dict[str, bytes]


class SelectionOwner:
    """Offers content; the thread and its connection are created on the first offer."""

    def __init__(self, display_name: str, selection: str) -> None:
        self._name = display_name
        self._selection = selection
        self._server: _Server | None = None
        self._lock = threading.Lock()

    def offer(self, forms: Forms) -> None:
        """Own the clipboard with these forms, or empty it. Raises ExecutionFailed when another client keeps it."""
        with self._lock:
            if self._server is not None and not self._server.is_alive:
                self._server.stop()
                self._server = None
            if self._server is None:
                self._server = _Server(open_display(self._name), self._selection)
            self._server.call(lambda server: server.own(forms))

    def wait_taken(self, focused_window: int, timeout_s: float) -> bool:
        """True once the client of this window fetched the content and has sent no further request for a moment."""
        with self._lock:
            server = self._server
        return server is not None and server.wait_taken(focused_window, timeout_s)

    def close(self) -> None:
        """Release the clipboard and end the thread."""
        with self._lock:
            server, self._server = self._server, None
        if server is not None:
            server.stop()


class _Server:
    """The thread: processes X events and calls from other threads, one at a time."""

    def __init__(self, display: "Display", selection: str) -> None:
        from Xlib import X

        self._display = display
        self._window = display.screen().root.create_window(0, 0, 1, 1, 0, X.CopyFromParent)
        self._selection = display.intern_atom(selection)
        self._targets, self._incr = display.intern_atom("TARGETS"), display.intern_atom("INCR")
        self._forms: dict[int, bytes] = {}
        self._sending: dict[tuple[int, int], tuple[int, bytes, int]] = {}
        self._taken: dict[int, float] = {}
        self._news = threading.Condition()
        self._calls: queue.SimpleQueue[tuple[Callable[[_Server], None], queue.SimpleQueue[Exception | None]]] = (
            queue.SimpleQueue()
        )
        self._wake_reader, self._wake_writer = os.pipe()
        self._running = True
        display.set_error_handler(lambda *_error: None)
        self._thread = threading.Thread(target=self._serve, name=f"x11-{selection.lower()}", daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def call(self, work: "Callable[[_Server], None]") -> None:
        """Run a function on the thread and wait for its result."""
        answer: queue.SimpleQueue[Exception | None] = queue.SimpleQueue()
        self._calls.put((work, answer))
        os.write(self._wake_writer, b"!")
        try:
            error = answer.get(timeout=_START_S)
        except queue.Empty:
            error = ExecutionFailed("The X server does not answer.")
        if error is not None:
            raise error

    def own(self, forms: Forms) -> None:
        """Take the clipboard (on the thread)."""
        from Xlib import X
        from Xlib.protocol import request

        with self._news:
            self._forms = self._by_target(forms)
            self._taken.clear()
        if not forms:
            request.SetSelectionOwner(
                display=self._display.display, window=X.NONE, selection=self._selection, time=X.CurrentTime
            )
            self._display.sync()
            return
        self._window.set_selection_owner(self._selection, X.CurrentTime)
        self._display.sync()
        if self._display.get_selection_owner(self._selection) != self._window:
            raise ExecutionFailed("Another application keeps the clipboard.")

    def wait_taken(self, focused_window: int, timeout_s: float) -> bool:
        mask = ~self._display.display.info.resource_id_mask
        client, deadline = focused_window & mask, time.monotonic() + timeout_s
        with self._news:
            while True:
                last = max((when for window, when in self._taken.items() if window & mask == client), default=None)
                now = time.monotonic()
                if last is not None and now - last >= _QUIET_S:
                    return True
                if now >= deadline:
                    return last is not None
                self._news.wait(min(deadline - now, _QUIET_S if last is not None else 1.0))

    def stop(self) -> None:
        self._running = False
        if self._thread.is_alive():
            os.write(self._wake_writer, b"!")
            self._thread.join(_START_S)
        os.close(self._wake_writer)

    def _by_target(self, forms: Forms) -> dict[int, bytes]:
        found: dict[int, bytes] = {}
        for media_type, raw in forms.items():
            found[self._display.intern_atom(media_type)] = raw
            if media_type == "text/plain":
                for name in ("UTF8_STRING", "text/plain;charset=utf-8", "TEXT"):
                    found[self._display.intern_atom(name)] = raw
                found[self._display.intern_atom("STRING")] = raw.decode(errors="replace").encode("latin-1", "replace")
        return found

    def _serve(self) -> None:
        from Xlib.error import ConnectionClosedError

        try:
            while self._running:
                while self._display.pending_events():
                    self._handle(self._display.next_event())
                self._run_calls()
                if not self._display.pending_events() and self._calls.empty():
                    select.select([self._display.fileno(), self._wake_reader], [], [])
        except (ConnectionClosedError, OSError):
            return
        finally:
            close_display(self._display)
            os.close(self._wake_reader)

    def _run_calls(self) -> None:
        if select.select([self._wake_reader], [], [], 0)[0]:
            os.read(self._wake_reader, 64)
        while not self._calls.empty():
            work, answer = self._calls.get()
            try:
                work(self)
            except ExecutionFailed as error:
                answer.put(error)
            else:
                answer.put(None)

    def _handle(self, event: Any) -> None:
        from Xlib import X

        if event.type == X.SelectionRequest:
            self._answer(event)
        elif event.type == X.PropertyNotify and event.state == X.PropertyDelete:
            self._send_piece(event.window, event.atom)
        elif event.type == X.SelectionClear:
            self._forms = {}

    def _answer(self, request: Any) -> None:
        from Xlib import X, Xatom
        from Xlib.protocol import event

        place = request.property or request.target
        if request.target == self._targets:
            request.requestor.change_property(place, Xatom.ATOM, 32, [self._targets, *self._forms])
        elif (raw := self._forms.get(request.target)) is None:
            place = X.NONE
        elif len(raw) <= _PIECE:
            request.requestor.change_property(place, request.target, 8, raw)
            self._note_taken(request.requestor.id)
        else:
            request.requestor.change_attributes(event_mask=X.PropertyChangeMask)
            request.requestor.change_property(place, self._incr, 32, [len(raw)])
            self._sending[(request.requestor.id, place)] = (request.target, raw, 0)
        notice = event.SelectionNotify(
            time=request.time, requestor=request.requestor, selection=request.selection,
            target=request.target, property=place,
        )  # fmt: skip
        request.requestor.send_event(notice)
        self._display.flush()

    def _send_piece(self, window: Any, place: int) -> None:
        sending = self._sending.get((window.id, place))
        if sending is None:
            return
        target, raw, offset = sending
        piece = raw[offset : offset + _PIECE]
        window.change_property(place, target, 8, piece)
        self._display.flush()
        if piece:
            self._sending[(window.id, place)] = (target, raw, offset + len(piece))
        else:
            # The empty piece ends the transfer.
            del self._sending[(window.id, place)]
            self._note_taken(window.id)

    def _note_taken(self, window_id: int) -> None:
        with self._news:
            self._taken[window_id] = time.monotonic()
            self._news.notify_all()

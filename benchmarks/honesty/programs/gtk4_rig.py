"""A window of GTK 4 with live, dead, disabled, slow and re-created buttons; it logs each event it handles.

Run by the system's Python. Commands come on stdin: tick, animate, still, recreate, read.
"""

import sys
import threading
import time
from pathlib import Path

import gi

gi.require_version("Gtk", "4.0")
from gi.repository import GLib, Gtk  # noqa: E402  # the version is chosen first

LOG = Path(sys.argv[1])
NAMES = ("Alpha", "Beta", "Gamma", "Delta")
CHECKS = ("Check 1", "Check 2", "Check 3")


def log(line: str) -> None:
    with LOG.open("a") as out:
        out.write(line + "\n")


class Rig(Gtk.ApplicationWindow):
    def __init__(self, app: Gtk.Application) -> None:
        super().__init__(application=app, title="gtk4 rig", default_width=520, default_height=420)
        self.fixed = Gtk.Fixed()
        self.set_child(self.fixed)
        self.count, self.timers = 0, []
        self.shown, self.clock, self.bar = Gtk.Label(label="Count: 0"), Gtk.Label(label="--:--:--"), Gtk.ProgressBar()
        for place, one in enumerate((self.shown, self.clock, self.bar)):
            self.fixed.put(one, 300, 10 + 30 * place)
        for place, name in enumerate(NAMES):
            self.button(name, place, self.live)
        self.button("Quiet", 4, log)
        self.button("Dead", 5, None)
        self.button("Slow", 6, self.slow)
        self.button("Off", 7, self.live).set_sensitive(False)
        self.fresh = self.button("Fresh", 8, self.live)
        for place, name in enumerate(CHECKS):
            check = Gtk.CheckButton(label=name)
            check.connect("toggled", lambda one, name=name: log(f"{name} {'on' if one.get_active() else 'off'}"))
            self.fixed.put(check, 300, 110 + 35 * place)
        self.line = Gtk.Entry()
        self.fixed.put(self.line, 300, 230)

    def button(self, name, place, do):
        one = Gtk.Button(label=name)
        one.set_size_request(120, 40)
        if do is not None:
            one.connect("clicked", lambda _one: do(name))
        self.fixed.put(one, 10 + 140 * (place % 2), 10 + 60 * (place // 2))
        return one

    def live(self, name: str) -> None:
        log(name)
        self.count += 1
        self.shown.set_label(f"Count: {self.count}")

    def slow(self, name: str) -> None:
        time.sleep(1.5)
        self.live(name)

    def every(self, milliseconds, do) -> None:
        def again() -> bool:
            do()
            return True

        self.timers.append(GLib.timeout_add(milliseconds, again))

    def command(self, word: str) -> None:
        if word == "tick":
            self.every(1000, lambda: self.clock.set_label(time.strftime("%H:%M:%S")))
        elif word == "animate":
            self.every(60, self.bar.pulse)
        elif word == "still":
            for timer in self.timers:
                GLib.source_remove(timer)
            self.timers = []
        elif word == "recreate":
            self.fixed.remove(self.fresh)
            self.fresh = self.button("Fresh", 8, self.live)
        elif word == "clear":
            self.line.set_text("")
        elif word == "read":
            log(f"line={self.line.get_text()}")
        if word != "read":
            log(f"did {word}")


def start(app: Gtk.Application) -> None:
    rig = Rig(app)
    rig.present()

    def listen() -> None:
        for text in sys.stdin:
            GLib.idle_add(rig.command, text.strip())

    threading.Thread(target=listen, daemon=True).start()


application = Gtk.Application()
application.connect("activate", start)
application.run([])

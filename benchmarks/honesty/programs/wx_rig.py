"""A window of wxPython with live, dead, disabled, slow and re-created buttons; it logs each event it handles.

Run by the system's Python. Commands come on stdin: tick, animate, still, recreate, read.
"""

import sys
import threading
import time
from pathlib import Path

import wx

LOG = Path(sys.argv[1])
NAMES = ("Alpha", "Beta", "Gamma", "Delta")
CHECKS = ("Check 1", "Check 2", "Check 3")


def log(line: str) -> None:
    with LOG.open("a") as out:
        out.write(line + "\n")


class Rig(wx.Frame):
    def __init__(self) -> None:
        super().__init__(None, title="wx rig", size=(520, 420), pos=(60, 60))
        self.panel = wx.Panel(self)
        self.count = 0
        self.shown = wx.StaticText(self.panel, label="Count: 0", pos=(300, 10))
        self.clock = wx.StaticText(self.panel, label="--:--", pos=(300, 40))
        self.gauge = wx.Gauge(self.panel, range=50, pos=(300, 70), size=(180, 20))
        for place, name in enumerate(NAMES):
            self.button(name, place, self.live)
        self.button("Quiet", 4, lambda name: log(name))
        self.button("Dead", 5, None)
        self.button("Slow", 6, self.slow)
        self.button("Off", 7, self.live).Disable()
        self.fresh = self.button("Fresh", 8, self.live)
        for place, name in enumerate(CHECKS):
            check = wx.CheckBox(self.panel, label=name, pos=(300, 110 + 35 * place))
            check.Bind(wx.EVT_CHECKBOX, lambda event, name=name: log(f"{name} {'on' if event.IsChecked() else 'off'}"))
        self.line = wx.TextCtrl(self.panel, pos=(300, 230), size=(180, 34))
        self.ticker = wx.Timer(self)
        self.mover = wx.Timer(self)
        self.Bind(wx.EVT_TIMER, lambda event: self.clock.SetLabel(time.strftime("%H:%M:%S")), self.ticker)
        self.Bind(wx.EVT_TIMER, lambda event: self.gauge.Pulse(), self.mover)

    def button(self, name, place, do):
        one = wx.Button(self.panel, label=name, pos=(10 + 140 * (place % 2), 10 + 60 * (place // 2)), size=(120, 40))
        if do is not None:
            one.Bind(wx.EVT_BUTTON, lambda event: do(name))
        return one

    def live(self, name: str) -> None:
        log(name)
        self.count += 1
        self.shown.SetLabel(f"Count: {self.count}")

    def slow(self, name: str) -> None:
        time.sleep(1.5)
        self.live(name)

    def command(self, word: str) -> None:
        if word == "tick":
            self.ticker.Start(1000)
        elif word == "animate":
            self.mover.Start(60)
        elif word == "still":
            self.ticker.Stop()
            self.mover.Stop()
        elif word == "recreate":
            self.fresh.Destroy()
            self.fresh = self.button("Fresh", 8, self.live)
        elif word == "clear":
            self.line.SetValue("")
        elif word == "read":
            log(f"line={self.line.GetValue()}")
        if word != "read":
            log(f"did {word}")


app = wx.App()
rig = Rig()
rig.Show()


def listen() -> None:
    for text in sys.stdin:
        wx.CallAfter(rig.command, text.strip())


threading.Thread(target=listen, daemon=True).start()
app.MainLoop()

"""A window of PyQt 5 (PyQt 6, where the second argument is 6) like that of the other toolkits; it logs each event it handles.

Run by the system's Python. Commands come on stdin: tick, animate, still, recreate, read.
"""

import sys
import threading
import time
from pathlib import Path

if sys.argv[2:] == ["6"]:
    from PyQt6.QtCore import QObject, QTimer, pyqtSignal
    from PyQt6.QtWidgets import QApplication, QCheckBox, QLabel, QLineEdit, QProgressBar, QPushButton, QWidget
else:
    from PyQt5.QtCore import QObject, QTimer, pyqtSignal
    from PyQt5.QtWidgets import QApplication, QCheckBox, QLabel, QLineEdit, QProgressBar, QPushButton, QWidget

LOG = Path(sys.argv[1])
NAMES = ("Alpha", "Beta", "Gamma", "Delta")
CHECKS = ("Check 1", "Check 2", "Check 3")


def log(line: str) -> None:
    with LOG.open("a") as out:
        out.write(line + "\n")


class Rig(QWidget):
    def __init__(self) -> None:
        super().__init__()
        self.setWindowTitle("qt rig")
        self.setGeometry(60, 60, 520, 420)
        self.count = 0
        self.shown = self.put(QLabel("Count: 0", self), 300, 10)
        self.clock = self.put(QLabel("--:--:--", self), 300, 40)
        self.bar = self.put(QProgressBar(self), 300, 70)
        for place, name in enumerate(NAMES):
            self.button(name, place, self.live)
        self.button("Quiet", 4, log)
        self.button("Dead", 5, None)
        self.button("Slow", 6, self.slow)
        self.button("Off", 7, self.live).setEnabled(False)
        self.fresh = self.button("Fresh", 8, self.live)
        for place, name in enumerate(CHECKS):
            check = self.put(QCheckBox(name, self), 300, 110 + 35 * place)
            check.toggled.connect(lambda on, name=name: log(f"{name} {'on' if on else 'off'}"))
        self.line = self.put(QLineEdit(self), 300, 230)
        self.ticker, self.mover = QTimer(self), QTimer(self)
        self.ticker.timeout.connect(lambda: self.clock.setText(time.strftime("%H:%M:%S")))
        self.mover.timeout.connect(lambda: self.bar.setValue((self.bar.value() + 3) % 100))

    def put(self, widget, x, y):
        widget.setGeometry(x, y, 180, 30)
        return widget

    def button(self, name, place, do):
        one = QPushButton(name, self)
        one.setGeometry(10 + 140 * (place % 2), 10 + 60 * (place // 2), 120, 40)
        if do is not None:
            one.clicked.connect(lambda _checked: do(name))
        one.show()
        return one

    def live(self, name: str) -> None:
        log(name)
        self.count += 1
        self.shown.setText(f"Count: {self.count}")

    def slow(self, name: str) -> None:
        time.sleep(1.5)
        self.live(name)

    def command(self, word: str) -> None:
        if word == "tick":
            self.ticker.start(1000)
        elif word == "animate":
            self.mover.start(60)
        elif word == "still":
            self.ticker.stop()
            self.mover.stop()
        elif word == "recreate":
            self.fresh.setParent(None)
            self.fresh.deleteLater()
            self.fresh = self.button("Fresh", 8, self.live)
        elif word == "clear":
            self.line.setText("")
        elif word == "read":
            log(f"line={self.line.text()}")
        if word != "read":
            log(f"did {word}")


class Ear(QObject):
    heard = pyqtSignal(str)


app = QApplication(["qt-rig"])
rig, ear = Rig(), Ear()
ear.heard.connect(rig.command)
rig.show()


def listen() -> None:
    for text in sys.stdin:
        ear.heard.emit(text.strip())


threading.Thread(target=listen, daemon=True).start()
app.exec()

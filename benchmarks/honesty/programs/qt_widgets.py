"""A window of PyQt 6 with menus, lists, tabs, fields and traps: it logs each event it handles, commands come on stdin."""

import sys
import threading
from pathlib import Path

from PyQt6.QtCore import QDate, QObject, Qt, QTimer, pyqtSignal
from PyQt6.QtWidgets import (
    QApplication,
    QComboBox,
    QDateEdit,
    QLabel,
    QListWidget,
    QMainWindow,
    QPushButton,
    QSlider,
    QSpinBox,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

LOG = Path(sys.argv[1])


def log(line: str) -> None:
    with LOG.open("a") as out:
        out.write(line + "\n")


class Pad(QWidget):
    """Logs where the button was pressed and where it was released."""

    def mousePressEvent(self, event) -> None:
        self.pressed = event.position().toPoint()

    def mouseReleaseEvent(self, event) -> None:
        end = event.position().toPoint()
        log(f"pad {'dragged' if (end - self.pressed).manhattanLength() > 40 else 'clicked'}")


class Widgets(QMainWindow):
    def __init__(self) -> None:
        super().__init__()
        self.setWindowTitle("widget rig")
        self.setGeometry(60, 80, 700, 520)
        self.inner = QWidget(self)
        self.setCentralWidget(self.inner)
        self.count = 0
        self.shown = self.put(QLabel("Count: 0"), 480, 10)
        self.news = [self.put(QLabel(f"news {number}"), 480, 40 + 22 * number) for number in range(12)]
        self.alpha = self.button("Alpha", 10, 10, self.live)
        self.dead = self.button("Dead", 170, 10, None)
        self.button("Opens", 10, 60, self.opens)
        self.button("Late", 170, 60, lambda name: QTimer.singleShot(1200, lambda: self.live(name)))
        self.choice = self.put(QComboBox(), 10, 110)
        self.choice.addItems(["One", "Two", "Three"])
        self.choice.activated.connect(lambda index: log(f"choice {self.choice.itemText(index)}"))
        self.tabs = self.put(QTabWidget(), 10, 150, 300, 70)
        for name in ("First", "Second", "Third"):
            self.tabs.addTab(QLabel(f"page {name}"), name)
        self.tabs.currentChanged.connect(lambda index: log(f"tab {self.tabs.tabText(index)}"))
        self.rows = self.put(QListWidget(), 10, 230, 200, 150)
        self.rows.addItems([f"Row {number}" for number in range(40)])
        self.rows.currentRowChanged.connect(lambda row: log(f"row {row}"))
        self.rows.verticalScrollBar().valueChanged.connect(lambda _value: log("scrolled"))
        self.date = self.put(QDateEdit(QDate(2026, 1, 15)), 230, 230)
        self.date.dateChanged.connect(lambda day: log(f"date {day.toString('yyyy-MM-dd')}"))
        self.spin = self.put(QSpinBox(), 230, 270)
        self.slider = self.put(QSlider(Qt.Orientation.Horizontal), 230, 310)
        self.slider.valueChanged.connect(lambda _value: log("slid"))
        self.pad = self.put(Pad(), 230, 350, 200, 100)
        self.menus()
        self.timer = QTimer(self)
        self.timer.timeout.connect(self.tick)
        self.ticks, self.dialogs = 0, []

    def menus(self) -> None:
        things = self.menuBar().addMenu("Things")
        things.addAction("Entry live").triggered.connect(lambda: self.live("Entry live"))
        things.addAction("Entry quiet").triggered.connect(lambda: log("Entry quiet"))
        things.addAction("Entry off").setEnabled(False)
        ticked = things.addAction("Entry check")
        ticked.setCheckable(True)
        ticked.toggled.connect(lambda on: log(f"Entry check {'on' if on else 'off'}"))

    def put(self, widget, x, y, width=150, height=28):
        widget.setParent(self.inner)
        widget.setGeometry(x, y, width, height)
        return widget

    def button(self, name, x, y, do):
        one = self.put(QPushButton(name), x, y, 140, 40)
        if do is not None:
            one.clicked.connect(lambda _checked: do(name))
        return one

    def live(self, name: str) -> None:
        log(name)
        self.count += 1
        self.shown.setText(f"Count: {self.count}")

    def opens(self, name: str) -> None:
        log(name)
        self.dialog("Asked", "Fine", 400, 300)

    def dialog(self, title: str, name: str, x: int, y: int) -> None:
        """A window of its own, in front of this one."""
        box = QWidget(None, Qt.WindowType.Window)
        box.setWindowTitle(title)
        one = QPushButton(name, box)
        one.clicked.connect(lambda _checked: (log(name), box.close()))
        QVBoxLayout(box).addWidget(one)
        box.setGeometry(x, y, 220, 120)
        box.show()
        box.raise_()
        self.dialogs.append(box)

    def tick(self) -> None:
        """Another label each time, as the rows of a list of processes change."""
        self.ticks += 1
        self.news[self.ticks * 5 % len(self.news)].setText(f"changed {self.ticks}")

    def command(self, word: str) -> None:
        name, _, number = word.partition(" ")
        if name == "tick":
            self.timer.start(int(number))
        elif name == "still":
            self.timer.stop()
        elif name == "pop":
            place = self.alpha.mapToGlobal(self.alpha.rect().center())
            QTimer.singleShot(int(number), lambda: self.dialog("Popped", "Delete", place.x() - 110, place.y() - 60))
        elif name == "unpop":
            for box in self.dialogs:
                box.close()
        elif name == "hop":
            for step in range(10):
                QTimer.singleShot(80 * step, lambda step=step: self.move(60 + 40 * step, 80 + 20 * step))
        elif name == "swap":
            QTimer.singleShot(int(number), self.swap)
        elif name == "read":
            log(f"spin={self.spin.value()}")
        if name != "read":
            log(f"did {word}")

    def swap(self) -> None:
        here, there = self.alpha.pos(), self.dead.pos()
        self.alpha.move(there)
        self.dead.move(here)


class Ear(QObject):
    heard = pyqtSignal(str)


app = QApplication(["qt-widgets"])
app.setQuitOnLastWindowClosed(False)
rig, ear = Widgets(), Ear()
ear.heard.connect(rig.command)
rig.show()


def listen() -> None:
    for text in sys.stdin:
        ear.heard.emit(text.strip())


threading.Thread(target=listen, daemon=True).start()
app.exec()

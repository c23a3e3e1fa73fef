"""A desktop with one window for the tools: in this process, or behind a link to another one."""

from dataclasses import dataclass, field
from typing import Any, Protocol

from computer_linker.computer.base import Computer
from computer_linker.computer.simulated import SimulatedComputer, SimulatedWindow
from computer_linker.model.geometry import Rect
from support.far import Far, FarWindow

_PLACE = Rect(x=100, y=100, width=400, height=300)


class StageWindow(Protocol):
    """The window on the stage: what reached it, and whether it closes."""

    @property
    def id(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def log(self) -> list[dict[str, Any]]: ...
    def keep_open(self) -> None: ...


class Stage(Protocol):
    """A computer with one window on it."""

    @property
    def computer(self) -> Computer: ...
    @property
    def window(self) -> StageWindow: ...

    def titles(self) -> list[str]: ...


@dataclass
class _NearWindow:
    window: SimulatedWindow

    @property
    def id(self) -> str:
        return self.window.id

    @property
    def text(self) -> str:
        return self.window.text

    @property
    def log(self) -> list[dict[str, Any]]:
        return self.window.log

    def keep_open(self) -> None:
        self.window.keeps_open = True


@dataclass
class NearStage:
    computer: SimulatedComputer = field(default_factory=SimulatedComputer)

    def __post_init__(self) -> None:
        self.window = _NearWindow(self.computer.world.open("editor", "Notes", _PLACE))

    def titles(self) -> list[str]:
        return [window.title for window in self.computer.world.windows]


class FarStage:
    def __init__(self, far: Far, computer: Computer) -> None:
        self._far, self.computer = far, computer
        made = far.ask("open", app="editor", title="Notes", bounds=_PLACE.model_dump(), colour=0x336699)
        self.window = FarWindow(far, made)

    def titles(self) -> list[str]:
        return [FarWindow(self._far, window).title for window in self._far.ask("windows")]

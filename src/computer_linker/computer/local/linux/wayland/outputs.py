"""The outputs of a compositor: position, size in pixels, and scale."""

from dataclasses import dataclass

from computer_linker.computer.local.linux.wayland.wire import Event, Wire
from computer_linker.errors import UnsupportedPlatform
from computer_linker.model.geometry import Display, Rect


@dataclass
class Output:
    """One wl_output."""

    number: int
    """Its object id."""
    x: int = 0
    y: int = 0
    pixel_width: int = 0
    pixel_height: int = 0
    scale: int = 1
    name: str = ""
    logical_width: int = 0
    logical_height: int = 0
    transform: int = 0

    @property
    def bounds(self) -> Rect:
        """Its rectangle in logical units."""
        turned = self.transform % 2 == 1
        width, height = (self.pixel_height, self.pixel_width) if turned else (self.pixel_width, self.pixel_height)
        return Rect(
            x=self.x,
            y=self.y,
            width=self.logical_width or width // self.scale,
            height=self.logical_height or height // self.scale,
        )

    def described(self, *, is_primary: bool) -> Display:
        return Display(
            id=self.name, name=self.name, bounds=self.bounds, pixel_width=self.pixel_width,
            pixel_height=self.pixel_height, scale=round(self.pixel_width / max(1, self.bounds.width), 4),
            is_primary=is_primary,
        )  # fmt: skip


class Outputs:
    """All outputs of one connection, kept up to date by the compositor's events."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self.all: list[Output] = []
        manager = wire.bind("zxdg_output_manager_v1", 3) if "zxdg_output_manager_v1" in wire.globals else None
        for which in range(len(wire.globals.get("wl_output", []))):
            self._add(which, manager)
        wire.roundtrip()
        wire.roundtrip()
        self.all.sort(key=lambda output: (output.x, output.y))
        for position, output in enumerate(self.all, start=1):
            output.name = output.name or f"output-{position}"

    def _add(self, which: int, manager: int | None) -> None:
        output = Output(0)
        output.number = self._wire.bind("wl_output", 4, lambda event: _from_output(output, event), which)
        self.all.append(output)
        if manager is not None:
            logical = self._wire.new(lambda event: _from_logical(output, event))
            self._wire.request(manager, 1, "no", logical, output.number)

    def displays(self) -> list[Display]:
        """The outputs from left to right; the first counts as primary, which Wayland does not define."""
        self._wire.roundtrip()
        found = [output for output in self.all if output.pixel_width]
        if not found:
            raise UnsupportedPlatform("The compositor has no outputs.")
        return [output.described(is_primary=position == 0) for position, output in enumerate(found)]

    def layout(self) -> Rect:
        """The smallest rectangle around all outputs."""
        areas = [output.bounds for output in self.all if output.pixel_width]
        left, top = min(area.x for area in areas), min(area.y for area in areas)
        right, bottom = max(area.right for area in areas), max(area.bottom for area in areas)
        return Rect(x=left, y=top, width=right - left, height=bottom - top)


def _from_output(output: Output, event: Event) -> None:
    match event.opcode:
        case 0:
            output.x, output.y = event.signed(), event.signed()
            event.signed(), event.signed(), event.signed(), event.text(), event.text()
            output.transform = event.signed()
        case 1:
            flags, width, height = event.unsigned(), event.signed(), event.signed()
            if flags & 1:
                output.pixel_width, output.pixel_height = width, height
        case 3:
            output.scale = max(1, event.signed())
        case 4:
            output.name = event.text()


def _from_logical(output: Output, event: Event) -> None:
    match event.opcode:
        case 0:
            output.x, output.y = event.signed(), event.signed()
        case 1:
            output.logical_width, output.logical_height = event.signed(), event.signed()
        case 3:
            output.name = event.text()

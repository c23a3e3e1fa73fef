"""The OCR engines: RapidOCR, whose models are in its wheel, then Tesseract."""

import threading
from collections import OrderedDict
from dataclasses import dataclass
from hashlib import blake2b
from importlib.util import find_spec
from typing import Any, Protocol, Self

from anyio import to_thread

from computer_linker.computer.facets.screen import Pixmap
from computer_linker.errors import ProviderUnavailable
from computer_linker.extras import remedy
from computer_linker.model.geometry import Rect
from computer_linker.providers.child import find_program

_REMEDY = f"{remedy('ocr')} Or install the program tesseract (Debian: tesseract-ocr)."
_REMEMBERED = 32


@dataclass(frozen=True, slots=True)
class Line:
    """One line of text in the picture."""

    text: str
    bounds: Rect
    """In the picture's pixels."""
    confidence: float


class Engine(Protocol):
    """Reads a picture; blocking."""

    name: str

    def read(self, pixmap: Pixmap, language: str | None) -> list[Line]: ...


class Ocr:
    """The engine of this machine, made on first use, and what it read of pictures that have not changed."""

    def __init__(self) -> None:
        self._engine: Engine | None = None
        self._lock = threading.Lock()
        self._read: OrderedDict[bytes, list[Line]] = OrderedDict()

    @classmethod
    def open(cls, services: object) -> Self:
        return cls()

    @property
    def engine(self) -> str:
        """The name of the engine that was last used."""
        return "" if self._engine is None else self._engine.name

    async def lines(self, pixmap: Pixmap, language: str | None = None) -> list[Line]:
        """The lines of a picture from top to bottom.

        Raises:
            ProviderUnavailable: no engine is installed.
        """
        return await to_thread.run_sync(self._lines, pixmap, language, abandon_on_cancel=True)

    def _lines(self, pixmap: Pixmap, language: str | None) -> list[Line]:
        # One at a time: an engine uses all the processor it can get.
        with self._lock:
            key = _key(pixmap, language)
            if key in self._read:
                self._read.move_to_end(key)
                return self._read[key]
            if self._engine is None:
                self._engine = best_engine()
            found = sorted(self._engine.read(pixmap, language), key=lambda line: (line.bounds.y, line.bounds.x))
            self._read[key] = found
            while len(self._read) > _REMEMBERED:
                self._read.popitem(last=False)
            return found


def best_engine() -> Engine:
    """The most exact engine that is installed."""
    if find_spec("rapidocr") is not None and find_spec("onnxruntime") is not None:
        from computer_linker.providers.ocr.rapid import RapidEngine

        return RapidEngine()
    if (program := find_program("tesseract")) is not None:
        from computer_linker.providers.ocr.tesseract import TesseractEngine

        return TesseractEngine(program)
    raise ProviderUnavailable(f"No OCR engine is installed. {_REMEDY}", remedy=_REMEDY)


def why_no_ocr() -> str | None:
    """Why pictures cannot be read here; None when they can."""
    installed = find_spec("rapidocr") is not None and find_spec("onnxruntime") is not None
    return None if installed or find_program("tesseract") else f"No OCR engine is installed. {_REMEDY}"


def _key(pixmap: Pixmap, language: str | None) -> bytes:
    digest = blake2b(pixmap.data, digest_size=16)
    digest.update(f"{pixmap.width} {pixmap.height} {language}".encode())
    return digest.digest()


def box(points: Any) -> Rect:
    """The upright rectangle around some points."""
    xs, ys = [float(point[0]) for point in points], [float(point[1]) for point in points]
    left, top = int(min(xs)), int(min(ys))
    return Rect(x=left, y=top, width=max(0, round(max(xs)) - left), height=max(0, round(max(ys)) - top))

"""Reading text from pixels, by the best engine that is installed: RapidOCR, whose models are in its wheel, then Tesseract."""

import csv
import io
import logging
import os
import re
import subprocess
import threading
from collections import OrderedDict
from dataclasses import dataclass
from hashlib import blake2b
from importlib.util import find_spec
from typing import Any, Protocol, Self

from anyio import to_thread

from computer_linker.computer.facets.screen import Pixmap
from computer_linker.errors import ExecutionFailed, InvalidRequest, ProviderUnavailable, TimedOut
from computer_linker.extras import remedy
from computer_linker.model.geometry import Rect
from computer_linker.policy.writers import find_program
from computer_linker.providers.images import to_image
from computer_linker.services import Services

_TIMEOUT_S = 60
_ENLARGED = 2
"""Twice the size reads screen text far better (word recall 0.75 against 0.59)."""
_REMEDY = f"{remedy('ocr')} Or install the program tesseract (Debian: tesseract-ocr)."
_REMEMBERED = 32
_LARGE = 60
"""Lines taller than this are read again, smaller: the model splits wide-spaced large glyphs into several lines."""
_USUAL = 30
"""The line height, in pixels, of the text that the model was made for."""


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
    """The engine of this machine, created on first use, and a cache of its results by image."""

    def __init__(self) -> None:
        self._engine: Engine | None = None
        self._lock = threading.Lock()
        self._read: OrderedDict[bytes, list[Line]] = OrderedDict()

    @classmethod
    def open(cls, services: Services) -> Self:
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
        # One at a time: an engine uses all available processors.
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


class TesseractEngine:
    """The tesseract program."""

    name = "tesseract"

    def __init__(self, program: str) -> None:
        self._program = program

    def read(self, pixmap: Pixmap, language: str | None) -> list[Line]:
        chosen = language or "eng"
        if not re.fullmatch(r"[A-Za-z_]{2,20}(\+[A-Za-z_]{2,20}){0,4}", chosen):
            raise InvalidRequest("A language looks like eng or eng+deu.", field="options.language")
        argv = [self._program, "stdin", "stdout", "-l", chosen, "--psm", "3", "tsv"]
        # With several threads Tesseract is slower, four times so on a busy machine.
        env = {"OMP_THREAD_LIMIT": "1", "PATH": os.environ.get("PATH", ""), "LC_ALL": "C.UTF-8"}
        try:
            done = subprocess.run(
                argv, input=_png(pixmap), env=env, capture_output=True, timeout=_TIMEOUT_S, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise TimedOut("Tesseract took too long.") from error
        if done.returncode != 0:
            raise ExecutionFailed("Tesseract failed; is the language installed?", language=chosen)
        return _lines(done.stdout.decode("utf-8", errors="replace"))


def _png(pixmap: Pixmap) -> bytes:
    from PIL import Image

    larger = to_image(pixmap).resize((pixmap.width * _ENLARGED, pixmap.height * _ENLARGED), Image.Resampling.BICUBIC)
    out = io.BytesIO()
    larger.save(out, "PNG", compress_level=1)
    return out.getvalue()


def _lines(table: str) -> list[Line]:
    words: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for row in csv.DictReader(io.StringIO(table), delimiter="\t", quoting=csv.QUOTE_NONE):
        if (row.get("text") or "").strip() and float(row["conf"]) >= 0:
            key = (row["page_num"], row["block_num"], row["par_num"], row["line_num"])
            words.setdefault(key, []).append(row)
    return [_line(line) for line in words.values()]


def _line(words: list[dict[str, str]]) -> Line:
    left, top = min(int(word["left"]) for word in words), min(int(word["top"]) for word in words)
    right = max(int(word["left"]) + int(word["width"]) for word in words)
    bottom = max(int(word["top"]) + int(word["height"]) for word in words)
    bounds = Rect(
        x=left // _ENLARGED, y=top // _ENLARGED, width=(right - left) // _ENLARGED, height=(bottom - top) // _ENLARGED
    )
    confidence = sum(float(word["conf"]) for word in words) / len(words) / 100
    return Line(" ".join(word["text"] for word in words), bounds, round(confidence, 4))


class RapidEngine:
    """RapidOCR with its default models, which read Latin and Chinese scripts."""

    name = "rapidocr"

    def __init__(self) -> None:
        from rapidocr import RapidOCR  # type: ignore[import-not-found,import-untyped,unused-ignore]  # no stubs

        logging.getLogger("RapidOCR").setLevel(logging.ERROR)
        # Threads synchronise at every step: with all cores, other load doubles the time of an image.
        threads = max(1, min(4, (os.cpu_count() or 1) // 2))
        # By default small images are enlarged first, which takes three times as long for no better result, and every line
        # is checked for being upside down.
        self._ocr: Any = RapidOCR(
            params={
                "Global.log_level": "error",
                "Global.use_cls": False,
                "Det.limit_type": "max",
                "Det.limit_side_len": 2000,
                "EngineConfig.onnxruntime.intra_op_num_threads": threads,
            }
        )

    def read(self, pixmap: Pixmap, language: str | None) -> list[Line]:
        import numpy

        raw = numpy.frombuffer(pixmap.data, numpy.uint8).reshape(pixmap.height, pixmap.stride)
        picture = raw[:, : pixmap.width * 4].reshape(pixmap.height, pixmap.width, 4)[:, :, :3]
        lines = self._lines(numpy.ascontiguousarray(picture))
        tallest = max((line.bounds.height for line in lines), default=0)
        if tallest <= _LARGE:
            return lines
        scale = _USUAL / tallest
        smaller = to_image(pixmap).resize((max(1, int(pixmap.width * scale)), max(1, int(pixmap.height * scale))))
        again = self._lines(numpy.ascontiguousarray(numpy.asarray(smaller.convert("RGB"))[:, :, ::-1]))
        return with_large([_enlarged(line, 1 / scale) for line in again], lines)

    def _lines(self, picture: Any) -> list[Line]:
        found = self._ocr(picture)
        if found is None or found.txts is None:
            return []
        return [
            Line(str(text), box(points), round(float(score), 4))
            for points, text, score in zip(found.boxes, found.txts, found.scores, strict=True)
        ]


def with_large(again: list[Line], lines: list[Line]) -> list[Line]:
    """The lines, with the large ones, and what lies in them, as they were read again."""
    first = [line.bounds for line in lines if line.bounds.height > _LARGE]
    large = [line for line in again if any(not line.bounds.intersection(bounds).is_empty for bounds in first)]
    kept = [line for line in lines if all(line.bounds.intersection(other.bounds).is_empty for other in large)]
    return kept + large


def _enlarged(line: Line, scale: float) -> Line:
    x, y, width, height = (
        round(part * scale) for part in (line.bounds.x, line.bounds.y, line.bounds.width, line.bounds.height)
    )
    return Line(line.text, Rect(x=x, y=y, width=width, height=height), line.confidence)


def best_engine() -> Engine:
    """The most exact engine that is installed."""
    if find_spec("rapidocr") is not None and find_spec("onnxruntime") is not None:
        return RapidEngine()
    if (program := find_program("tesseract")) is not None:
        return TesseractEngine(program)
    raise ProviderUnavailable(f"No OCR engine is installed. {_REMEDY}", remedy=_REMEDY)


def why_no_ocr() -> str | None:
    """The reason OCR is unavailable; None when it is available."""
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

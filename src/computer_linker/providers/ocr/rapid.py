"""RapidOCR: exact on screens, works offline, its models come with it."""

import logging
import os
from typing import Any

from computer_linker.computer.facets.screen import Pixmap
from computer_linker.providers.ocr.engines import Line, box


class RapidEngine:
    """RapidOCR with its default models, which read Latin and Chinese scripts."""

    name = "rapidocr"

    def __init__(self) -> None:
        from rapidocr import RapidOCR  # type: ignore[import-not-found,import-untyped,unused-ignore]  # no stubs

        logging.getLogger("RapidOCR").setLevel(logging.ERROR)
        # Threads wait for each other at every step: with all cores, others' work makes a picture take twice as long.
        threads = max(1, min(4, (os.cpu_count() or 1) // 2))
        # By default small pictures are blown up first, which costs three times as long for no better result, and every line
        # is asked whether it stands on its head.
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
        found = self._ocr(numpy.ascontiguousarray(picture))
        if found is None or found.txts is None:
            return []
        return [
            Line(str(text), box(points), round(float(score), 4))
            for points, text, score in zip(found.boxes, found.txts, found.scores, strict=True)
        ]

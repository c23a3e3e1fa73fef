"""Reading text from pixels, with the best engine that is installed."""

from computer_linker.providers.ocr.engines import Line, Ocr

__all__ = ["Line", "Ocr"]

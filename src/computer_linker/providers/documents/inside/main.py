"""The decoder's entry: reads one request, decodes the file it was handed, and prints the answer.

The file arrives as its standard input, open. Limits on memory and processor time are set before its first byte is read.
"""

import json
import os
import sys
from typing import Any, BinaryIO

from computer_linker.providers.documents.inside.base import (
    Answer,
    Document,
    Payload,
    Refused,
    Request,
    answer_of,
    opened,
)
from computer_linker.system.limits import limit_this_process, own_use


def main() -> None:
    """Decode once. The answer is a line of JSON on stdout, followed by a picture's or member's bytes."""
    order = json.loads(sys.argv[1])
    limit_this_process(order.pop("memory"), int(order.pop("seconds")))
    file = opened(0)
    action, kind = order.pop("action"), order.pop("kind")
    payload = b""
    try:
        request = Request(**order)
        if action == "edit":
            from computer_linker.providers.documents.inside.editing import edit

            found: Answer = edit(kind, file, request)
        else:
            found = read(kind, file, request)
        if isinstance(found, Payload):
            answer: dict[str, Any] = {"payload": found.kind, **found.facts}
            payload = found.content
        else:
            answer = answer_of(found, request)
    except Refused as refused:
        answer = {"error": refused.code, "message": refused.message, **refused.details}
    except MemoryError:
        answer = {"error": "limit_exceeded", "message": "The file needs more memory than a decoder may use."}
    except RecursionError:
        answer = {"error": "execution_failed", "message": "The file is nested too deeply to decode."}
    peak, processor = own_use()
    answer |= {"peak": peak, "processor": processor}
    _print(json.dumps(answer).encode("ascii") + b"\n" + payload)
    # Libraries that a hostile file may have left in any state are not finalised.
    os._exit(0)


def _print(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


def read(kind: str, file: BinaryIO, request: Request) -> Answer:
    """Read the file as this kind. Each reader is imported when it is needed, because starting is most of the time."""
    if kind == "package":
        return _package(file, request)
    from importlib import import_module

    module, name = _READERS[kind]
    found: Document | Payload = getattr(import_module(f"{__package__}.{module}"), name)(file, request)
    return found


_READERS = {
    "pdf": ("pdf", "pdf"), "picture": ("pictures", "picture"), "svg": ("pictures", "svg"),
    "mail": ("books", "mail"), "notebook": ("books", "notebook"), "web": ("books", "web_page"),
    "csv": ("tables", "separated"), "parquet": ("tables", "parquet"), "tar": ("archives", "tar_archive"),
    "compressed": ("archives", "compressed"), "sound": ("media", "sound"), "mp4": ("media", "mp4"),
    "matroska": ("media", "matroska"), "avi": ("media", "avi"),
}  # fmt: skip


def _package(file: BinaryIO, request: Request) -> Answer:
    """A ZIP file: an OOXML or OpenDocument file or a book by what is in it, else an archive."""
    from computer_linker.providers.documents.inside import archives, books, excel, flow, ods, slides
    from computer_linker.providers.documents.inside.package import Package
    from computer_linker.providers.documents.inside.parts import kind_of

    package = Package(file)
    found, main = kind_of(package)
    if request.member is not None and found != "zip":
        return archives.zip_archive(package, request)
    match found:
        case "word":
            return flow.word(package, request, main)
        case "excel":
            return excel.excel(package, request, main)
        case "powerpoint":
            return slides.powerpoint(package, request, main)
        case "odt":
            return flow.odt(package, request)
        case "ods":
            return ods.ods(package, request)
        case "odp":
            return slides.odp(package, request)
        case "epub":
            return books.epub(package, request)
    return archives.zip_archive(package, request)

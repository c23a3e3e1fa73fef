"""More than 200 public documents: none crashes the decoder, and their words are those of the reference converters.

The measure is recall: the share of the words that pdftotext or LibreOffice gives, counted as often as they occur, which
file.read gives too. Refused documents are those that a person could not open either: encrypted, empty, or damaged.
"""

import shutil
import subprocess
import zipfile
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from support.corpus import DEBIAN, PYPI, documents, recall
from support.documents import converted
from support.road import Road

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(1800)]
FEW = ["odfpy", "nbformat"]
OTHERS = [name for name in (*PYPI, *DEBIAN) if name not in FEW]
UNREADABLE = 0.1
"""The largest share of a package's documents that may be refused: test data has broken files on purpose."""


async def read_all(road: Road, files: list[Path]) -> tuple[dict[Path, str], dict[str, dict[str, Any]]]:
    """The text of each document, and the refusals by name."""
    texts: dict[Path, str] = {}
    refused: dict[str, dict[str, Any]] = {}
    for file in files:
        shutil.copyfile(file, road.root / file.name)
        options: dict[str, Any] = {"maxBytes": 2_000_000, "encoding": "document"}
        answer = await road.call("file.read", file.name, options=options)
        if answer["ok"]:
            texts[file] = answer["data"]["content"]
        else:
            refused[file.name] = answer["error"]
        (road.root / file.name).unlink()
    return texts, refused


async def judged(name: str, road: Road) -> None:
    files = documents(name)
    _, refused = await read_all(road, files)
    codes = {"invalid_request", "execution_failed", "limit_exceeded"}
    assert {error["code"] for error in refused.values()} <= codes, refused
    assert not [one for one in refused.items() if "without an answer" in one[1]["message"]], refused
    broken = {name: error["message"] for name, error in refused.items() if "encrypted" not in error["message"]}
    print(f"{name}: {len(files)} documents, {len(refused)} refused: {broken}")
    assert len(broken) <= max(2, UNREADABLE * len(files)), broken


@pytest.mark.parametrize("name", FEW)
async def test_public_documents_are_read_without_a_crash(name: str, road: Road) -> None:
    await judged(name, road)


@pytest.mark.parametrize("name", OTHERS)
async def test_so_are_the_others(name: str, road: Road) -> None:
    await judged(name, road)


def agree(recalls: dict[str, float], least: float) -> None:
    """Half of them nearly all words, and nine of ten at least `least`."""
    low = {name: round(value, 2) for name, value in sorted(recalls.items(), key=lambda item: item[1]) if value < least}
    print(f"{len(recalls)} documents, median recall {median(recalls.values()):.3f}, below {least}: {low}")
    assert median(recalls.values()) >= 0.98 and len(low) <= max(1, 0.1 * len(recalls)), low


def has_chart(file: Path) -> bool:
    with zipfile.ZipFile(file) as opened:
        return any("/charts/" in name for name in opened.namelist())


def by_pdftotext(file: Path) -> str | None:
    if shutil.which("pdftotext") is None:
        pytest.skip("not installed: pdftotext (Debian: poppler-utils)")
    done = subprocess.run(["pdftotext", str(file), "-"], capture_output=True, timeout=120, check=False)
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None


async def test_pdfs_have_the_words_that_pdftotext_gives(road: Road) -> None:
    files = [file for file in documents("pypdf") if file.suffix == ".pdf"]
    texts, _ = await read_all(road, files)
    references = {file: by_pdftotext(file) for file in texts}
    agree({file.name: recall(text, texts[file]) for file, text in references.items() if text and text.strip()}, 0.9)


@pytest.mark.parametrize(
    ("name", "ending", "to"),
    [
        ("python-docx", ".docx", "txt:Text (encoded):UTF8"),
        ("odfpy", ".odt", "txt:Text (encoded):UTF8"),
        ("tablib", ".xlsx", "csv:Text - txt - csv (StarCalc):44,34,76"),
        ("xlsxwriter", ".xlsx", "csv:Text - txt - csv (StarCalc):44,34,76"),
        ("python-pptx", ".pptx", "pdf"),
    ],
)
async def test_office_documents_have_the_words_that_libreoffice_gives(
    name: str, ending: str, to: str, road: Road, tmp_path: Path
) -> None:
    # A chart's axis has numbers that the application calculates; no reader finds them in the file.
    files = [file for file in documents(name) if file.suffix == ending and not has_chart(file)][:120]
    texts, _ = await read_all(road, files)
    made = {place.stem: place for place in converted(list(texts), to, tmp_path)}
    recalls = {}
    for file, text in texts.items():
        if file.stem in made:
            place = made[file.stem]
            reference = by_pdftotext(place) if to == "pdf" else place.read_text("utf-8", "replace")
            if reference and reference.strip():
                recalls[file.name] = recall(reference, text)
    assert len(recalls) >= 3, "LibreOffice converted too few of them"
    agree(recalls, 0.9)


@pytest.mark.parametrize(
    ("name", "ending"), [("python-docx", ".docx"), ("python-pptx", ".pptx"), ("odfpy", ".odt"), ("tablib", ".xlsx")]
)
async def test_libreoffice_opens_every_edited_file_and_shows_the_change(
    name: str, ending: str, road: Road, tmp_path: Path
) -> None:
    """A mark is put in front of a word of each document, or into a cell, and LibreOffice shows it."""
    files = [file for file in documents(name) if file.suffix == ending]
    texts, _ = await read_all(road, files)
    edited: list[Path] = []
    for file, text in texts.items():
        words = [line.strip("#-| ") for line in text.splitlines() if not line.startswith("---")]
        word = next((line.split()[0] for line in words if line.split() and line.split()[0].isalpha()), None)
        if word is None or len(edited) == 12:
            continue
        shutil.copyfile(file, road.root / file.name)
        change = {"texts": [{"oldText": word, "newText": f"Qx7{word}", "replaceAll": True}]}
        cells = {"cells": [{"range": "A1", "values": "Qx7cell"}]}
        answer = await road.call("document.edit", file.name, input=cells if ending == ".xlsx" else change)
        if answer["ok"]:
            edited.append(road.root / file.name)
        else:
            # A text that LibreOffice puts together from parts of the file, such as a field, is in no paragraph.
            assert answer["error"]["code"] in ("not_found", "invalid_request"), answer
    to = "csv" if ending == ".xlsx" else "pdf"
    made = converted(edited, to, tmp_path)
    assert len(made) == len(edited) >= 3
    for place in made:
        shown = place.read_text("utf-8", "replace") if to == "csv" else by_pdftotext(place)
        assert shown is not None and "Qx7" in shown, place.name

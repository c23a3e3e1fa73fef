"""The names and types of Apple's frameworks, from the metadata in pyobjc's wheels: downloaded for macOS, read, never run."""

import ast
import re
import subprocess
import sys
import zipfile
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
FOLDER = PROJECT / ".tools" / "pyobjc"
PACKAGES = ("pyobjc-framework-applicationservices", "pyobjc-framework-cocoa", "pyobjc-framework-quartz")
MODULES = {
    "ApplicationServices": ("HIServices/",),
    "AppKit": ("AppKit/", "Foundation/", "CoreFoundation/"),
    "Quartz": ("Quartz/CoreGraphics/", "Quartz/"),
}
"""The modules that the facets import, and the folders of the wheels whose names are in each."""


@dataclass
class Names:
    """What one module has."""

    constants: set[str] = field(default_factory=set)
    numbers: dict[str, float] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    functions: dict[str, tuple[bytes, bool]] = field(default_factory=dict)
    """The encoded type of each function, and whether it takes further arguments (`...`)."""
    classes: set[str] = field(default_factory=set)
    selectors: set[tuple[str, str]] = field(default_factory=set)
    """The methods of which something is recorded: most have nothing special, and are not here."""

    def has(self, name: str) -> bool:
        known = (self.constants, self.numbers, self.texts, self.functions, self.classes)
        return any(name in each for each in known)


@cache
def names() -> dict[str, Names]:
    """The names of each module; skips the test where the registry has not the wheels."""
    found = {module: Names() for module in MODULES}
    for wheel in _wheels():
        with zipfile.ZipFile(wheel) as opened:
            for member in opened.namelist():
                for module, folders in MODULES.items():
                    if member.endswith("/_metadata.py") and member.startswith(folders):
                        _read(opened.read(member).decode(), found[module])
    return found


def arity(encoded: bytes) -> int:
    """How many arguments a function of this encoded type takes."""
    return len(_types(encoded.decode())) - 1


def _wheels() -> list[Path]:
    lock = (PROJECT / "requirements" / "dev.txt").read_text()
    wanted = [match[0] for name in PACKAGES if (match := re.search(rf"^{name}==[0-9.]+", lock, re.M))]
    assert len(wanted) == len(PACKAGES)
    FOLDER.mkdir(parents=True, exist_ok=True)
    files = [FOLDER.glob(f"{one.replace('-', '_').replace('__', '_').replace('==', '-')}-*.whl") for one in wanted]
    kept = [next(iter(each), None) for each in files]
    if None in kept:
        platform = ("--platform", "macosx_10_9_universal2", "--python-version", "3.11", "--only-binary=:all:")
        pip = [sys.executable, "-m", "pip", "download", "-q", "-d", str(FOLDER), "--no-deps", *platform, *wanted]
        done = subprocess.run(pip, capture_output=True, text=True, timeout=300, check=False)
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["pip ended without a word"])[-1]
            pytest.skip(f"pyobjc's wheels for macOS cannot be had from the registry: {last[:200]}")
    return sorted(FOLDER.glob("*.whl"))


def _read(text: str, into: Names) -> None:
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Assign(targets=[ast.Name(id="constants")], value=ast.Constant(value=str(listed))):
                into.constants |= {name.partition("@")[0] for name in listed.strip("$").split("$")}
            case ast.Assign(targets=[ast.Name(id="enums")], value=ast.Constant(value=str(listed))):
                pairs = (each.partition("@") for each in listed.strip("$").split("$"))
                into.numbers |= {name: float(value) for name, _, value in pairs if value}
            case ast.Call(
                func=ast.Name(id="r"), args=[ast.Constant(value=bytes(owner)), ast.Constant(value=bytes(name)), *_]
            ):
                into.classes.add(owner.decode())
                into.selectors.add((owner.decode(), name.decode().replace(":", "_")))
            case ast.Call(
                func=ast.Attribute(attr="registerNewKeywords"),
                args=[ast.Constant(value=str(owner)), _, ast.Constant(value=str(name))],
            ):
                into.classes.add(owner)
                into.selectors.add((owner, name))
            case ast.Dict():
                _read_table(node, into)


def _read_table(table: ast.Dict, into: Names) -> None:
    for key, value in zip(table.keys, table.values, strict=True):
        if not (isinstance(key, ast.Constant) and isinstance(key.value, str)):
            continue
        match value:
            case ast.Constant(value=str(text)):
                into.texts[key.value] = text
            case ast.Tuple(elts=[ast.Constant(value=bytes(encoded)), *more]):
                into.functions[key.value] = (encoded, "'variadic'" in "".join(map(ast.dump, more)))


def _types(encoded: str) -> list[str]:
    """The types of an encoded signature, one after the other: the result's first."""
    found, at = [], 0
    while at < len(encoded):
        end = _end(encoded, at)
        found.append(encoded[at:end])
        at = end
    return found


def _end(encoded: str, at: int) -> int:
    while encoded[at] in "^rnNoORV":
        at += 1
    if encoded[at] in "{([":
        depth = 0
        while True:
            depth += (encoded[at] in "{([") - (encoded[at] in "})]")
            at += 1
            if depth == 0:
                return at
    return at + 2 if encoded[at : at + 2] == "@?" else at + 1

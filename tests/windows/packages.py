"""The packages that the product and its tests need in Windows Python, at the versions of the lock file."""

import re
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

LOCK = Path(__file__).resolve().parents[2] / "requirements" / "dev.txt"
WINDOWS = {
    "sys_platform": "win32", "platform_system": "Windows", "os_name": "nt", "platform_machine": "AMD64", "extra": "",
    "python_version": "3.11", "python_full_version": "3.11.0", "implementation_name": "cpython",
    "platform_python_implementation": "CPython",
}  # fmt: skip
TESTS = ("pytest", "pytest-timeout", "hypothesis", "keyring", "cryptography")


def wanted() -> list[str]:
    """`name==version` of the product's dependencies and the tests', with what they need on Windows themselves."""
    locked = _locked()
    found: dict[str, str] = {}
    todo = ["computer-linker", *TESTS]
    while todo:
        name = todo.pop()
        for needed in _needs(name):
            if needed not in found and needed in locked:
                found[needed] = locked[needed]
                todo.append(needed)
        if name in locked:
            found[name] = locked[name]
    return [f"{name}=={version}" for name, version in sorted(found.items())]


def _locked() -> dict[str, str]:
    found: dict[str, str] = {}
    for line in LOCK.read_text().splitlines():
        if (match := re.match(r"([a-z0-9-]+)==([^ ;\\]+)( ;[^\\]+)?", line)) is not None:
            requirement = Requirement(f"{match[1]}=={match[2]}{match[3] or ''}")
            if requirement.marker is None or requirement.marker.evaluate(WINDOWS):
                found[match[1]] = match[2]
    return found


def _needs(name: str) -> list[str]:
    try:
        listed = requires(name) or []
    except PackageNotFoundError:
        # One that is for Windows alone: those in the lock file need nothing themselves.
        return []
    requirements = map(Requirement, listed)
    return [canonicalize_name(one.name) for one in requirements if one.marker is None or one.marker.evaluate(WINDOWS)]

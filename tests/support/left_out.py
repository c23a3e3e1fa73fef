"""A pytest plugin for a run on another system: leaves out the tests that a list names, each with the reason.

The list (`LEFT_OUT`, a path) has a pattern a line, file::test[parameters] or a file alone, two spaces and the reason. What is
left out counts as skipped, with its reason, and a pattern that fits nothing ends the run: a list must not outlive its tests.
"""

import os
from pathlib import Path

import pytest

from support.long_tests import TESTS, fitting


def reasons(list_file: Path) -> dict[str, str]:
    """The patterns of a list, with their reasons."""
    lines = (line for line in list_file.read_text().splitlines() if line and not line.startswith("#"))
    return {pattern: reason.strip() for pattern, _, reason in (line.partition("  ") for line in lines)}


class LeftOut:
    """The hooks of one run."""

    def __init__(self, found: dict[str, str]) -> None:
        self.files = {name: reason for name, reason in found.items() if "::" not in name}
        self.tests = {name: reason for name, reason in found.items() if "::" in name}

    def pytest_pycollect_makemodule(self, module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
        reason = self.files.get(module_path.relative_to(TESTS).as_posix())
        return None if reason is None else LeftOutFile.from_parent(parent, path=module_path, reason=reason)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        used: set[str] = set()
        for item in items:
            name = item.nodeid.removeprefix("tests/")
            for pattern, reason in self.tests.items():
                if fitting([pattern]).match(name):
                    used.add(pattern)
                    item.add_marker(pytest.mark.skip(reason=reason))
        chosen = {item.nodeid.removeprefix("tests/").partition("::")[0] for item in items}
        stale = [name for name in self.tests if name not in used and name.partition("::")[0] in chosen]
        if stale:
            raise pytest.UsageError(f"left out, but not there: {', '.join(stale)}")


class LeftOutFile(pytest.Module):
    """A file that cannot be imported here: one skipped test stands for it."""

    def __init__(self, *, reason: str, **more: object) -> None:
        super().__init__(**more)  # type: ignore[arg-type]
        self.reason = reason

    def collect(self) -> "list[pytest.Item | pytest.Collector]":
        item = WholeFile.from_parent(self, name="whole_file")
        item.add_marker(pytest.mark.skip(reason=self.reason))
        return [item]


class WholeFile(pytest.Item):
    """Stands for all tests of a file."""

    def runtest(self) -> None:
        raise AssertionError("left out")

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, self.name


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(LeftOut(reasons(Path(os.environ["LEFT_OUT"]))))

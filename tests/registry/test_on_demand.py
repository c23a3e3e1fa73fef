"""The service's catalogue imports an operation when it is asked for, and is the whole catalogue for everything else."""

import importlib
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from computer_linker import operations
from computer_linker.registry.catalog import collect, collect_on_demand
from support.road import LOCAL, Road


def test_one_operation_is_imported_alone() -> None:
    script = (
        "import sys\nfrom computer_linker import operations\nfrom computer_linker.registry.catalog import collect_on_demand\n"
        "catalog = collect_on_demand(operations)\nassert catalog.by_name['file.stat'].name == 'file.stat'\n"
        "assert catalog.operations['file.stat'] is catalog.by_name['stat']\n"
        "print(*(name for name in sys.modules if name.startswith('computer_linker.operations.') and name.count('.') == 3))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=240)
    assert "computer_linker.operations.file.stat" in done.stdout.split()
    assert "computer_linker.operations.git.status" not in done.stdout.split()


def test_it_is_the_same_catalogue() -> None:
    whole, lazy = collect(operations).with_older_names(), collect_on_demand(operations)
    assert lazy.by_name["process.start"] is whole.by_name["process.start"], "an alias, found in no file of its name"
    assert lazy.operations == whole.operations and lazy.by_name == whole.by_name
    assert list(lazy.operations) == list(whole.operations)


@pytest.mark.anyio
async def test_an_unknown_name_is_looked_up_beside_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The import of every operation takes most of a second, in which others are served."""
    package = tmp_path / "slow_operations"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "noun.py").write_text("import threading\nTHREAD = threading.get_ident()\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    async with Road.open(tmp_path) as road:
        dispatcher = road.app.dispatcher.with_catalog(collect_on_demand(importlib.import_module(package.name)))
        for request in ({"scope": "app", "op": "other.verb"}, {"scope": "app", "op": "other.verb", "field": 1}):
            reply = await dispatcher.call_wire(request, LOCAL)
            assert reply.envelope["error"]["code"] in ("unknown_operation", "invalid_request")
    assert threading.get_ident() != sys.modules["slow_operations.noun"].THREAD


@pytest.mark.parametrize("name", ["file.nothing", "nothing", "../x", "file", "process.start"])
def test_what_is_no_operation_is_none(name: str) -> None:
    assert name not in collect_on_demand(operations).operations

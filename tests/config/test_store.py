"""Writing config.json: whole, private, one writer at a time."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from computer_linker.config.load import load
from computer_linker.config.store import ensure, update
from computer_linker.errors import ConfigInvalid


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "deep" / "home"
    ensure(folder, "t" * 32)
    return folder


def test_the_first_config_is_private_loopback_and_exposes_nothing(home: Path) -> None:
    config = load(home)
    assert (mode(home), mode(home / "config.json")) == (0o700, 0o600)
    assert (config.host, config.scopes, config.owner_token) == ("127.0.0.1", [], "t" * 32)


def test_an_existing_config_is_never_touched(home: Path) -> None:
    (home / "config.json").write_text("{ broken")
    assert ensure(home, "u" * 32) is False
    assert (home / "config.json").read_text() == "{ broken"


def test_a_change_is_stored_and_keeps_the_identity(home: Path) -> None:
    before = load(home).machine_id
    update(home, lambda value: value.update(port=4001))
    after = load(home)
    assert (after.port, after.machine_id) == (4001, before)
    assert mode(home / "config.json") == 0o600


def test_a_change_that_would_not_validate_leaves_the_file_as_it_was(home: Path) -> None:
    before = (home / "config.json").read_bytes()
    with pytest.raises(ConfigInvalid, match="`port`"):
        update(home, lambda value: value.update(port="high"))
    assert (home / "config.json").read_bytes() == before


def test_a_file_that_does_not_load_is_not_changed(home: Path) -> None:
    (home / "config.json").write_text('{"machineId": 5}')
    with pytest.raises(ConfigInvalid):
        update(home, lambda value: value.clear())
    assert (home / "config.json").read_text() == '{"machineId": 5}'


def test_a_failed_write_says_so_and_leaves_nothing_behind(home: Path) -> None:
    before = (home / "config.json").read_bytes()
    # A limit on file size is the closest thing to a full disk that a test can have without a disk of its own.
    code = (
        "import resource, signal, sys; from pathlib import Path\n"
        "from computer_linker.config.store import update; from computer_linker.errors import ConfigInvalid\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))\n"
        "try: update(Path(sys.argv[1]), lambda value: value.update(port=4002))\n"
        "except ConfigInvalid as error: print(error.message)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(home)], capture_output=True, text=True, timeout=240, check=True
    )
    assert "as it was" in done.stdout
    assert (home / "config.json").read_bytes() == before
    assert sorted(path.name for path in home.iterdir()) == [
        "config.json", "config.last-good.json", "config.lock", "config.noted.json",
    ]  # fmt: skip


def test_writers_at_the_same_time_lose_nothing(home: Path, tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from computer_linker.config.store import update\n"
        "for n in range(5):\n"
        "    scope = {'id': f's{sys.argv[2]}-{n}', 'roots': [sys.argv[3]], 'capabilities': ['fs:read']}\n"
        "    update(Path(sys.argv[1]), lambda value: value['scopes'].append(scope))\n"
    )
    writers = [
        subprocess.Popen([sys.executable, "-c", code, str(home), str(number), str(tmp_path)]) for number in range(3)
    ]
    assert [writer.wait(timeout=240) for writer in writers] == [0, 0, 0]
    assert len(load(home).scopes) == 15


def test_what_the_owner_wrote_is_kept_as_it_was(home: Path, tmp_path: Path) -> None:
    value: dict[str, Any] = json.loads((home / "config.json").read_text())
    value["scopes"] = [{"id": "app", "roots": [str(tmp_path)], "capabilities": ["fs:read"]}]
    (home / "config.json").write_text(json.dumps(value))
    update(home, lambda changed: changed.update(port=4003))
    assert json.loads((home / "config.json").read_text()) == {**value, "port": 4003}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write a read-only folder")
def test_a_read_only_state_folder_is_one_clear_error(home: Path) -> None:
    home.chmod(0o500)
    with pytest.raises(ConfigInvalid, match="cannot be written"):
        update(home, lambda value: value.update(port=4004))

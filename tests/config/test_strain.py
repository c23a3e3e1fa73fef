"""Kills and nonsense: the file is old or new, and a config is right or refused."""

import json
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from computer_linker.config.load import load
from computer_linker.config.migrate import modernised
from computer_linker.config.runtime import effective
from computer_linker.config.schema import Config
from computer_linker.config.store import ensure, update
from computer_linker.errors import ConfigInvalid

_WRITER = (
    "import sys; from pathlib import Path\n"
    "from computer_linker.config.store import update\n"
    "print('ready', flush=True)\n"
    "number = 0\n"
    "while True:\n"
    "    number += 1\n"
    "    update(Path(sys.argv[1]), lambda value: value.update(machineName=f'name-{number}-' + 'x' * 100, port=number))\n"
    "    print(number, flush=True)\n"
)


def test_a_writer_killed_at_any_moment_leaves_the_old_file_or_the_new(tmp_path: Path) -> None:
    home = tmp_path / "home"
    ensure(home, "t" * 32)
    chance = random.Random(7)
    for _ in range(5):
        command = [sys.executable, "-c", _WRITER, str(home)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            for _ in range(chance.randrange(2, 12)):
                stored = writer.stdout.readline().strip()
            writer.send_signal(signal.SIGKILL)
            rest = writer.stdout.read().split()
        known = int((rest or [stored])[-1])
        # What was acknowledged is there; at most one more was under way.
        assert load(home).port in (known, known + 1)
        assert load(home).machine_name.startswith(f"name-{load(home).port}-")
        ensure(home, None)


def test_what_a_killed_writer_left_does_not_stop_the_next(tmp_path: Path) -> None:
    home = tmp_path / "home"
    ensure(home, "t" * 32)
    command = [sys.executable, "-c", _WRITER, str(home)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        writer.kill()
    (home / ".config.json-left").write_text("half")
    update(home, lambda value: value.update(port=5000))
    assert load(home).port == 5000
    assert sorted(path.name for path in home.iterdir()) == [
        "config.json", "config.last-good.json", "config.lock", "config.noted.json",
    ]  # fmt: skip


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.text(max_size=8) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
_FIELDS = sorted(Config.model_json_schema(by_alias=True)["properties"])
_SCOPE_FIELDS = ["id", "name", "type", "roots", "capabilities", "policy", "path", "permissions", "read", "surprise"]


def _documents() -> st.SearchStrategy[dict[str, Any]]:
    scope = st.dictionaries(st.sampled_from(_SCOPE_FIELDS), _JSON, max_size=4)
    lists = st.dictionaries(st.sampled_from(["scopes", "workspaces"]), st.lists(scope | _JSON, max_size=2), max_size=2)
    return st.builds(
        lambda a, b: {**a, **b}, st.dictionaries(st.sampled_from([*_FIELDS, "extra"]), _JSON, max_size=5), lists
    )


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(value=_documents())
def test_any_document_is_a_config_or_a_refusal_that_says_why(tmp_path: Path, value: dict[str, Any]) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700, exist_ok=True)
    path = home / "config.json"
    path.write_text(json.dumps(value))
    path.chmod(0o600)
    before = path.read_bytes()
    try:
        effective(load(home), home)
    except ConfigInvalid as error:
        assert error.message and error.hint
    assert path.read_bytes() == before


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(raw=st.binary(max_size=200) | st.text(alphabet='{}[]",:\\ud8019nulNaIinfty-e.+ ', max_size=60).map(str.encode))
def test_any_bytes_are_a_config_or_a_refusal(tmp_path: Path, raw: bytes) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700, exist_ok=True)
    (home / "config.json").write_bytes(raw)
    (home / "config.json").chmod(0o600)
    with pytest.raises(ConfigInvalid):
        effective(load(home), home)
        raise ConfigInvalid("an empty object is a config")


_MEANS = {"fs:read": "read", "search:read": "read", "git:read": "read", "history:read": "read", "fs:write": "write",
          "git:write": "write", "command:run": "shell", "process:manage": "shell", "package:run": "shell",
          "codex:run": "codex", "screen:capture": "screen"}  # fmt: skip


@given(
    flags=st.lists(
        st.dictionaries(st.sampled_from(["read", "write", "shell", "codex", "screen"]), st.booleans()), max_size=3
    )
)
def test_migration_never_adds_a_right(flags: list[dict[str, bool]]) -> None:
    workspaces = [{"id": f"w{number}", "path": "/srv", "permissions": given} for number, given in enumerate(flags)]
    scopes = modernised({"workspaces": workspaces})["scopes"]
    for scope in scopes:
        for capability in scope["capabilities"]:
            flag = _MEANS[capability]
            if scope["type"] == "computer":
                assert any(given.get("screen") for given in flags)
            else:
                assert flags[int(scope["id"][1:])].get(flag) is True

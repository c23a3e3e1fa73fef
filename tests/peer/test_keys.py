"""This machine's key: in a real keyring where there is one, else in a private file; lost to nobody, made anew for nobody."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from computer_linker.errors import ProviderUnavailable
from computer_linker.transports.peer.identity import own_identity, read_key

_ASK = """
import sys
from pathlib import Path
from computer_linker.transports.peer.identity import own_identity
made = own_identity(Path(sys.argv[1]), "machine")
assert b"PRIVATE KEY" in made.key_pem
print(made.fingerprint)
"""


def _in_a_session_with_a_keyring(
    home: Path, opened: str = "printf pw | gnome-keyring-daemon --unlock --components=secrets"
) -> str:
    """The fingerprint, asked twice by two processes in one session that has a keyring."""
    ask = f"{sys.executable} -c '{_ASK}' {home}"
    script = f"{opened} >/dev/null; {ask} && {ask}"
    kept = {name: value for name, value in os.environ.items() if name != "PYTHON_KEYRING_BACKEND"}
    env = {**kept, "XDG_DATA_HOME": str(home.parent / "data"), "XDG_RUNTIME_DIR": str(home.parent / "run")}
    (home.parent / "run").mkdir(mode=0o700, exist_ok=True)
    done = subprocess.run(
        ["dbus-run-session", "--", "sh", "-c", script], env=env, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.split()
    assert first == second
    return first


def test_without_a_keyring_the_key_is_in_a_file_of_our_own(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    made = own_identity(home, "machine")
    assert own_identity(home, "machine") == made
    if (home / "peer-key.pem").exists():
        assert (home / "peer-key.pem").stat().st_mode & 0o777 == 0o600
    assert "PRIVATE" not in repr(made)


def test_with_a_keyring_no_key_is_on_the_disk_and_a_closed_keyring_makes_no_new_one(tmp_path: Path) -> None:
    for program in ("gnome-keyring-daemon", "dbus-run-session"):
        if shutil.which(program) is None:
            pytest.skip(f"not installed: {program}")
    pytest.importorskip("keyring", reason="not installed: keyring")
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    fingerprint = _in_a_session_with_a_keyring(home)
    assert sorted(path.name for path in home.iterdir()) == ["peer-cert.pem"]
    with pytest.raises(ProviderUnavailable):
        read_key(home)
    assert sorted(path.name for path in home.iterdir()) == ["peer-cert.pem"]
    assert _in_a_session_with_a_keyring(home) == fingerprint


def test_a_keyring_that_would_ask_the_person_is_left_alone(tmp_path: Path) -> None:
    """A session whose keyring was never opened: the service takes a file rather than wait for an answer."""
    for program in ("gnome-keyring-daemon", "dbus-run-session"):
        if shutil.which(program) is None:
            pytest.skip(f"not installed: {program}")
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    _in_a_session_with_a_keyring(home, opened="gnome-keyring-daemon --start --components=secrets")
    assert sorted(path.name for path in home.iterdir()) == ["peer-cert.pem", "peer-key.pem"]
    assert (home / "peer-key.pem").stat().st_mode & 0o777 == 0o600

"""`computer-linker watch` over ssh, at 80 by 24, as an owner who is elsewhere uses it."""

import shutil
import sys
from pathlib import Path

import pytest

from computer_linker.client import Client
from support.road import folder_scope
from support.service import PROGRAM, serving
from support.sshd import prepare, running
from support.sshd import program as sshd
from support.tmux import program as tmux
from support.tmux import terminal

pytestmark = pytest.mark.skipif(
    tmux() is None or sshd() is None or shutil.which("ssh") is None, reason="not installed: tmux, openssh"
)


def test_it_shows_calls_and_takes_keys_over_ssh(tmp_path: Path) -> None:
    server = prepare(tmp_path / "ssh")
    (server.folder / "authorized_keys").write_text((server.folder / "id.pub").read_text())
    options = [
        "-F",
        "none",
        "-o",
        "BatchMode=yes",
        "-o",
        f"UserKnownHostsFile={server.known_hosts}",
        "-i",
        str(server.key),
    ]
    with running(server), serving(tmp_path, token=None, scopes=[folder_scope(tmp_path / "root")]) as service:
        remote = [
            "env",
            f"COMPUTER_LINKER_HOME={service.home}",
            f"PYTHONPATH={':'.join(sys.path)}",
            "LANG=C.UTF-8",
            *PROGRAM,
        ]
        there = ["ssh", "-tt", *options, "-p", str(server.port), server.destination, *remote, "watch"]
        with terminal(tmp_path / "t", there, {"PATH": "/usr/bin:/bin"}) as shown:
            shown.until("Computer Linker  live", "[1 calls]", "q quit")
            with Client.over_socket(home=service.home) as linker:
                linker.scope("app").call("file.list", ".")
            screen = shown.until("listed app", "done")
            assert all(len(line) <= 80 for line in screen.splitlines())
            shown.press("4")
            shown.until("[4 listening]", "computer-linker stop")

"""Two real services on one machine, paired and used from the command line alone."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from support.commands import command
from support.service import PROGRAM, end_service, environment, write_config


def run(home: Path, *arguments: str, ok: bool = True) -> Any:
    done = command(home, *arguments, "--json")
    assert (done.returncode == 0) == ok, done.stdout + done.stderr
    return json.loads(done.stdout) if done.stdout.strip().startswith("{") else done.stderr


def on_a_terminal(home: Path, *arguments: str) -> str:
    """What standard error shows where it is a terminal."""
    shown, terminal = os.openpty()
    try:
        done = subprocess.run(
            [*PROGRAM, *arguments], env=environment(home), stdout=subprocess.PIPE, stderr=terminal, timeout=240
        )
        assert done.returncode == 0
        return os.read(shown, 10_000).decode()
    finally:
        os.close(shown)
        os.close(terminal)


def test_a_code_typed_on_the_other_computer_makes_it_usable_by_name(tmp_path: Path) -> None:
    desk, laptop = tmp_path / "desk", tmp_path / "laptop"
    write_config(desk, tmp_path / "desk-root", machineId="desk-id", machineName="desk")
    write_config(laptop, tmp_path / "laptop-root", machineId="laptop-id", machineName="laptop")
    (tmp_path / "laptop-root" / "a.txt").write_text("on the laptop")
    try:
        assert "does not listen" in run(laptop, "peer", "pair", ok=False)
        where = run(laptop, "peer", "listen", "--port", "0")["listening"]
        assert "cannot listen" in run(laptop, "peer", "listen", "--host", "256.1.1.1", ok=False)
        assert run(laptop, "computers")["listening"] == where, "it listens where it did"
        assert "no scope" in run(laptop, "peer", "pair", "--allow", "nope", ok=False)
        code = run(laptop, "peer", "pair", "--allow", "app:fs:read")["code"]
        assert "refused" in run(desk, "peer", "pair", where, "AAAAA-AAAAA-AAAAA-AAAAA-AAAAA-A", ok=False)
        assert run(desk, "peer", "pair", where, code)["name"] == "laptop"
        assert [item["name"] for item in run(desk, "computers")["computers"]] == ["laptop"]
        given = [(item["name"], item["mayUseHere"]) for item in run(laptop, "computers")["computers"]]
        assert given == [("desk", ["app:fs:read"])]
        read = run(desk, "op", "file.read", "a.txt", "--on", "laptop", "--scope", "app")
        assert read["data"]["content"] == "on the laptop"
        written = run(
            desk, "op", "file.write", "b.txt", "--on", "laptop", "--scope", "app", "--input", "content=x", ok=False
        )
        assert written["error"]["code"] == "permission_denied"
        assert not (tmp_path / "laptop-root" / "b.txt").exists()
        copied = run(desk, "peer", "copy", "laptop/app:a.txt", "app:from-laptop.txt")
        assert copied == {"from": "laptop/app:a.txt", "to": "from-laptop.txt"}
        assert (tmp_path / "desk-root" / "from-laptop.txt").read_text() == "on the laptop"
        (tmp_path / "laptop-root" / "big.bin").write_bytes(bytes(20_000_000))
        told = on_a_terminal(desk, "peer", "copy", "laptop/app:big.bin", "app:big.bin")
        assert "8 MB" in told and told.endswith("\r\x1b[K"), "the line that is written over is cleared"
        refused = run(desk, "peer", "copy", "app:from-laptop.txt", "laptop/app:b.txt", ok=False)
        assert refused.startswith("error: permission_denied: ") and "does not allow" in refused
        again = run(desk, "peer", "copy", "laptop/app:a.txt", "app:from-laptop.txt", ok=False)
        assert again.startswith("error: already_exists: ") and "--overwrite" in again and "Traceback" not in again
        assert not (tmp_path / "laptop-root" / "b.txt").exists()
        assert "another computer" in run(desk, "peer", "copy", "app:a", "app:b", ok=False)
        run(laptop, "peer", "remove", "desk")
        gone = run(desk, "op", "file.read", "a.txt", "--on", "laptop", "--scope", "app", ok=False)
        assert gone["error"]["code"] == "permission_denied"
        assert "where the code is shown" in run(desk, "peer", "pair", where, code, "--allow", "app", ok=False)
        said = {event["op"] for event in run(laptop, "history")["events"]}
        assert said >= {"peer.listen", "peer.pair", "peer.remove"}
    finally:
        end_service(desk)
        end_service(laptop)


def test_the_command_for_the_other_computer_has_an_address_that_leads_here(tmp_path: Path) -> None:
    laptop = tmp_path / "laptop"
    write_config(laptop, tmp_path / "laptop-root", machineId="laptop-id", machineName="laptop")
    try:
        where = run(laptop, "peer", "listen", "--host", "0.0.0.0", "--port", "0")["listening"]
        assert where.startswith("0.0.0.0:")
        address = run(laptop, "peer", "pair")["address"]
        assert address.endswith(where.removeprefix("0.0.0.0"))
        assert not address.startswith("0.0.0.0")
    finally:
        end_service(laptop)

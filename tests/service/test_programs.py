"""Programs are named with the command that installs them, and a launcher without its program is missing."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from computer_linker.client.socket_client import call_service
from computer_linker.transports.mcp.info_text import INFO_SHOWN
from support.commands import command
from support.service import serving, write_config

WITHOUT = "#!/bin/sh\necho \"error: 'rust-analyzer' is not installed for the toolchain '1.90.0-x86_64'\" >&2\nexit 1\n"
WITH = "#!/bin/sh\necho rust-analyzer 1.91.0\n"

ASKED = """
import sys
from pathlib import Path
from computer_linker.service.programs import InstalledPrograms
programs = InstalledPrograms(Path(sys.argv[1]))
programs.check_launchers(())
print("rust-analyzer" in programs.names())
programs.tools(())
"""


def doctor(home: Path, folder: Path) -> dict[str, Any]:
    path = f"{folder}:/usr/bin:/bin"
    found: dict[str, Any] = json.loads(command(home, "doctor", "--json", env={"PATH": path}).stdout)["tools"]
    return found


@pytest.mark.parametrize(("text", "version"), [(WITHOUT, None), (WITH, "1.91.0")], ids=["no component", "component"])
def test_a_launcher_is_available_only_where_its_program_answers(tmp_path: Path, text: str, version: str | None) -> None:
    """Found: rustup's `rust-analyzer` without the component was shown as ok, with the toolchain's version as its own."""
    write_config(tmp_path / "home", tmp_path / "root")
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "rust-analyzer"
    program.write_text(text)
    program.chmod(0o755)
    tool = doctor(tmp_path / "home", tmp_path / "bin")["rust-analyzer"]
    assert (tool["available"], tool["version"]) == (version is not None, version), tool
    assert tool["remedy"] == (None if version else "rustup component add rust-analyzer")


def test_a_launcher_that_does_not_end_is_missing(tmp_path: Path) -> None:
    write_config(tmp_path / "home", tmp_path / "root")
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "rust-analyzer"
    program.write_text("#!/bin/sh\nexec sleep 600\n")
    program.chmod(0o755)
    assert doctor(tmp_path / "home", tmp_path / "bin")["rust-analyzer"]["available"] is False


def test_missing_programs_are_named_with_the_command_that_installs_them(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    for name in ("git", "python3", "sh"):
        (tmp_path / "bin" / name).symlink_to(f"/usr/bin/{name}")
    with serving(tmp_path, env={"PATH": os.fspath(tmp_path / "bin")}) as service:
        info = call_service(service.home, "get_computer_info", {"include": ["tools"]})
    assert info["tools"]["gopls"]["remedy"] == "go install golang.org/x/tools/gopls@latest"
    text = INFO_SHOWN.fields["tools"](info["tools"])
    assert "missing: gopls, for code.* for .go. go install golang.org/x/tools/gopls@latest" in text.splitlines(), text
    assert "git" in text.splitlines()[0].split()


def test_a_launcher_that_failed_is_asked_again_by_the_next_service(tmp_path: Path) -> None:
    """Found: one that did not answer at a loaded start was stored as failed, and its file stays the same."""
    program, part = tmp_path / "bin" / "rust-analyzer", tmp_path / "part"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho asked >> {tmp_path}/log\nexec cat {part}\n")
    program.chmod(0o755)

    def is_here() -> bool:
        environ = {**os.environ, "PATH": f"{program.parent}:/usr/bin:/bin"}
        argv = [sys.executable, "-c", ASKED, str(tmp_path)]
        done = subprocess.run(argv, env=environ, capture_output=True, text=True, timeout=120, check=True)
        return done.stdout == "True\n"

    assert not is_here()
    (stored,) = tmp_path.glob("programs-*.json")
    assert "/usr/bin/git" in stored.read_text() and str(program) not in stored.read_text()
    part.write_text("rust-analyzer 1.91.0\n")
    assert is_here()
    asked = (tmp_path / "log").read_text()
    assert is_here() and (tmp_path / "log").read_text() == asked, "one that ran is not asked again"

"""The product in Windows Python under wine: it starts, serves over its named pipe and HTTP, and refuses what Windows asks for.

No test here has run on Windows itself. Wine has no reparse points before version 9, so links are not among these tests.
The mission's points 000-012, 000-163 and 000-224 (the service on Windows), 000-228 and 000-231 (a laboratory for it).
"""

import pytest

from windows import wine
from windows.machine import Client, Machine

pytestmark = pytest.mark.skipif(wine.program() is None, reason=wine.MISSING)
_IMPORTS = """
import importlib, pkgutil, sys
import computer_linker
assert sys.platform == "win32"
others = (".local.linux", ".local.macos", "system.linux", "system.lineage", "system.proc_files", "system.macos", "system.unix")
failed = []
for found in pkgutil.walk_packages(computer_linker.__path__, "computer_linker."):
    if found.name.endswith("__main__") or any(other in found.name for other in others):
        continue
    try:
        importlib.import_module(found.name)
    except Exception as error:
        if getattr(error, "name", None) in ("msgpack", "nats", "websockets", "numpy", "PIL"):
            continue  # of an extra, which is not installed here
        failed.append(f"{found.name}: {error!r}")
print("\\n".join(failed) or "all")
"""
_AS_THE_OWNER = """
from computer_linker import home
try:
    home.enter(home.state_home(), home.GREETING_CONTROL)
except OSError as error:
    print("refused:", error)
else:
    print("admitted")
"""
_SECURITY = """
import ctypes, sys
from computer_linker.system.windows import channel, nt, security
path = channel.pipe_name(sys.argv[1], "service.sock")
handle = nt.kernel32().CreateFileW(path, 0x20000, 0, None, 3, 0, None)
assert handle != nt.INVALID_HANDLE, nt.last_failure()
advapi = security.advapi32()
size = ctypes.c_ulong()
advapi.GetKernelObjectSecurity(ctypes.c_void_p(handle), 4, None, 0, ctypes.byref(size))
buffer = ctypes.create_string_buffer(size.value)
assert advapi.GetKernelObjectSecurity(ctypes.c_void_p(handle), 4, buffer, size, ctypes.byref(size))
text = ctypes.c_wchar_p()
advapi.ConvertSecurityDescriptorToStringSecurityDescriptorW(buffer, 1, 4, ctypes.byref(text), None)
print(security.own_sid(), text.value)
"""


def test_every_module_can_be_imported(machine: Machine) -> None:
    done = machine.run("-c", _IMPORTS)
    assert (done.stdout.strip(), done.stderr) == ("all", "")


def test_the_owner_s_commands_answer(machine: Machine) -> None:
    assert machine.run("-m", "computer_linker", "--version").stdout.strip()
    assert "python" in machine.run("-m", "computer_linker", "doctor").stdout
    assert f"{machine.there}\\work".replace("\\", "/") in machine.run("-m", "computer_linker", "scope", "list").stdout
    checked = machine.run("-m", "computer_linker", "config", "validate")
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "config.json is valid.\n", "")


def test_self_test_passes(machine: Machine) -> None:
    done = machine.run("-m", "computer_linker", "self-test")
    assert done.returncode == 0 and "All steps passed." in done.stderr, done.stdout + done.stderr
    assert "http: get_computer_info" in done.stdout


def test_files_are_read_written_found_and_put_back(machine: Machine, client: Client) -> None:
    notes = machine.work / "notes.txt"
    assert client.call("file.read", "notes.txt")["data"]["content"] == "first\n"
    written = client.call("file.write", "notes.txt", input={"content": "second\n"})
    assert (written["ok"], written["effect"], notes.read_bytes()) == (True, "confirmed", b"second\n")
    undone = client.call("file.undo", None, input={"operationId": "last"})
    assert (undone["ok"], notes.read_bytes()) == (True, b"first\n")
    assert client.call("file.write", "a\\b.txt", input={"content": "x"}, options={"createParents": True})["ok"]
    edits = [{"oldText": "x", "newText": "first of two"}]
    assert client.call("file.patch", "a/b.txt", input={"edits": edits})["effect"] == "confirmed"
    assert (machine.work / "a" / "b.txt").read_bytes() == b"first of two"
    found = client.call("file.find", ".", input={"pattern": "*.txt"})["data"]["files"]
    assert found == ["a/b.txt", "notes.txt"]
    matches = client.call("file.search", ".", input={"query": "first"})["data"]["matches"]
    assert [match["path"] for match in matches] == ["a/b.txt", "notes.txt"]
    moved = client.call("file.move", "a/b.txt", input={"destination": "c.txt"})
    assert (moved["ok"], (machine.work / "c.txt").exists(), (machine.work / "a" / "b.txt").exists()) == (
        True,
        True,
        False,
    )
    assert client.call("file.delete", "c.txt")["ok"] and not (machine.work / "c.txt").exists()
    assert client.call("file.undo", None, input={"operationId": "last"})["ok"] and (machine.work / "c.txt").exists()
    names = [entry["name"] for entry in client.call("file.list", ".")["data"]["entries"]]
    assert names == ["a", "c.txt", "notes.txt"]


@pytest.mark.parametrize(
    ("target", "codes"),
    [
        ("a.txt:evil.exe", {"invalid_request"}),
        ("a.txt::$DATA", {"invalid_request"}),
        ("CON", {"invalid_request"}),
        ("sub/nul.txt", {"invalid_request"}),
        ("com1", {"invalid_request"}),
        (".env. .", {"invalid_request", "permission_denied"}),
        ("trailing.", {"invalid_request"}),
        ("trailing ", {"invalid_request"}),
        ("a?b", {"invalid_request"}),
        (".GIT/hooks/pre-commit", {"permission_denied"}),
        ("..\\state\\config.json", {"path_out_of_scope"}),
        ("C:\\windows\\win.ini", {"path_out_of_scope"}),
        ("\\\\host\\share\\x", {"path_out_of_scope"}),
        ("\\\\?\\C:\\windows\\win.ini", {"path_out_of_scope", "invalid_request"}),
    ],
)
def test_names_that_windows_takes_for_something_else_are_refused(
    machine: Machine, client: Client, target: str, codes: set[str]
) -> None:
    before = sorted(machine.work.rglob("*"))
    read = client.call("file.read", target)
    written = client.call("file.write", target, input={"content": "x"}, options={"createParents": True})
    assert {read["error"]["code"], written["error"]["code"]} <= codes | {"not_found"}
    assert written["error"]["code"] in codes
    assert sorted(machine.work.rglob("*")) == before


def test_an_absolute_path_inside_the_scope_is_taken_in_either_form(machine: Machine, client: Client) -> None:
    for target in (f"{machine.there}\\work\\notes.txt", f"{machine.there}\\work\\notes.txt".replace("\\", "/")):
        assert client.call("file.read", target)["data"]["path"] == "notes.txt"


def test_a_command_runs_in_its_folder_and_ends_with_what_it_started(machine: Machine, client: Client) -> None:
    code = "import os, sys; print(6 * 7, os.getcwd()); sys.exit(3)"
    told = client.call("command.run", ".", input={"command": ["python", "-c", code]})["data"]
    assert (told["exitCode"], told["stdout"].split()) == (3, ["42", f"{machine.there}\\work"])
    assert told["boundary"] == "none"
    started = client.call("command.start", ".", input={"command": ["python", "-c", "print(input()); input()"]})
    handle = str(started["data"]["processId"])
    client.call("command.send", handle, input={"text": "typed\n"})
    read = client.call("command.read", handle, options={"waitFor": "typed", "waitSeconds": 50})
    assert "typed" in read["data"]["chunks"][0]["text"]
    assert client.call("command.stop", handle)["data"]["status"] == "stopped"


def test_a_batch_file_is_no_program(machine: Machine, client: Client) -> None:
    (machine.work / "evil.bat").write_bytes(b"echo x > made\r\n")
    for command in (["./evil.bat"], ["evil"], [f"{machine.there}\\work\\evil.bat"]):
        refused = client.call("command.run", ".", input={"command": command})
        assert refused["ok"] is False
    assert not (machine.work / "made").exists()
    (machine.work / "evil.bat").unlink()


def test_a_program_of_a_command_is_not_the_owner(machine: Machine, client: Client) -> None:
    env = {"COMPUTER_LINKER_HOME": f"{machine.there}\\state"}
    code = f"import os; os.environ.update({env!r})\n{_AS_THE_OWNER}"
    told = client.call("command.run", ".", input={"command": ["python", "-c", code]})["data"]["stdout"]
    assert told.startswith("refused") and "never taken for the owner" in told


def test_an_orphan_of_a_command_is_not_the_owner(machine: Machine, client: Client) -> None:
    env = {"COMPUTER_LINKER_HOME": f"{machine.there}\\state"}
    orphan = f"import os, sys, time; from computer_linker.system import started_at\nos.environ.update({env!r})\n"
    orphan += f"while started_at(int(sys.argv[1])) is not None: time.sleep(0.05)\n{_AS_THE_OWNER}"
    parent = f"import os, subprocess, sys; subprocess.Popen([sys.executable, '-c', {orphan!r}, str(os.getpid())])"
    command = (
        f"import subprocess, sys; done = subprocess.run([sys.executable, '-c', {parent!r}]); print(sys.stdin.read())"
    )
    started = client.call("command.start", ".", input={"command": ["python", "-c", command]})
    handle = str(started["data"]["processId"])
    read = client.call("command.read", handle, options={"waitFor": "refused|admitted", "waitSeconds": 50})
    text = "".join(chunk["text"] for chunk in read["data"]["chunks"])
    client.call("command.stop", handle)
    assert "never taken for the owner" in text and "admitted" not in text, read


def test_the_pipe_is_the_user_s_alone(machine: Machine, client: Client) -> None:
    assert client.call("file.list", ".")["ok"]
    done = machine.run("-c", _SECURITY, f"{machine.there}\\state")
    sid, _, granted = done.stdout.strip().partition(" ")
    assert sid.startswith("S-1-5-"), done.stderr
    entries = granted.partition("(")[2].rstrip(")").split(")(")
    assert {entry.rpartition(";")[2] for entry in entries} <= {sid, "SY"}, granted

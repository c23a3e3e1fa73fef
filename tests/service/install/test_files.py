"""What is written for each system: complete, quoted, without secrets. launchd and Windows are checked as files only."""

import os
import plistlib
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from computer_linker.config.schema import Config
from computer_linker.service.install.keep import Log, as_text
from computer_linker.service.install.launchd import LABEL, Launchd
from computer_linker.service.install.plan import Plan, ServiceManager, ServiceManagerFailed, fields, make_plan
from computer_linker.service.install.systemd import Systemd
from computer_linker.service.install.windows import WindowsTask
from support.service import PROGRAM, TOKEN, environment, write_config

HOSTILE = '/srv/a b/$HOME/%h/"x"/it\'s\\n;&|`id`'
MANAGERS = (Systemd(), Launchd(), WindowsTask())


def plan(home: str = HOSTILE) -> Plan:
    return Plan(Path(home), ("/opt/p y/python", "-I", "-m", "computer_linker", "serve"), {"COMPUTER_LINKER_HOME": home})


@pytest.mark.parametrize("manager", MANAGERS, ids=lambda manager: manager.name)
def test_no_secret_of_the_config_is_written(manager: ServiceManager, tmp_path: Path) -> None:
    config = Config(machine_id="m", machine_name="m", owner_token=TOKEN)
    text = as_text(manager.rendered(make_plan(tmp_path, config)))
    assert TOKEN not in text and "ownerToken" not in text
    assert str(tmp_path) in text and sys.executable in text


def test_the_interpreter_is_the_one_of_the_environment_and_not_where_it_leads(tmp_path: Path) -> None:
    made = make_plan(tmp_path, Config(machine_id="m", machine_name="m"))
    assert made.argv[0] == sys.executable
    assert made.argv[-2:] == ("serve", "--log")


def test_the_path_keeps_no_folder_that_a_client_or_a_stranger_can_write(tmp_path: Path) -> None:
    for name, mode in (("good", 0o755), ("shared", 0o777), ("root/bin", 0o755)):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name).chmod(mode)
    scope = {"id": "app", "type": "folder", "roots": [str(tmp_path / "root")], "capabilities": ["fs:read"]}
    config = Config.from_wire({"machineId": "m", "machineName": "m", "scopes": [scope]})
    folders = [tmp_path / "good", tmp_path / "shared", tmp_path / "root/bin", Path("bin"), tmp_path / "none"]
    before = os.environ["PATH"]
    os.environ["PATH"] = os.pathsep.join(map(str, [*folders, tmp_path / "good", ""]))
    try:
        assert make_plan(tmp_path, config).environment["PATH"] == str(tmp_path / "good")
    finally:
        os.environ["PATH"] = before


def test_a_unit_expands_nothing(tmp_path: Path) -> None:
    text = as_text(Systemd().rendered(plan()))
    (command,) = [line for line in text.splitlines() if line.startswith("ExecStart=")]
    assert command == 'ExecStart="/opt/p y/python" "-I" "-m" "computer_linker" "serve"'
    (variable,) = [line for line in text.splitlines() if line.startswith("Environment=")]
    escaped = HOSTILE.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    assert variable == f'Environment="COMPUTER_LINKER_HOME={escaped}"'


def test_the_path_keeps_no_folder_below_one_that_others_can_write_or_that_leads_into_a_scope(tmp_path: Path) -> None:
    for name, mode in (("open", 0o777), ("open/bin", 0o755), ("real", 0o755), ("real/bin", 0o755), ("sticky", 0o1777)):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(mode)
    (tmp_path / "sticky" / "bin").mkdir(mode=0o755)
    (tmp_path / "root").symlink_to("real")
    foreign = tmp_path / "foreign"
    foreign.mkdir(mode=0o755)
    if os.getuid() == 0:
        os.chown(foreign, 12345, 12345)
    else:
        foreign.chmod(0o777)
    scope = {"id": "app", "type": "folder", "roots": [str(tmp_path / "root")], "capabilities": ["fs:read"]}
    config = Config.from_wire({"machineId": "m", "machineName": "m", "scopes": [scope]})
    names = ("open/bin", "real/bin", "root/bin", "sticky", "foreign", "sticky/bin")
    before = os.environ["PATH"]
    os.environ["PATH"] = os.pathsep.join(str(tmp_path / name) for name in names)
    try:
        assert make_plan(tmp_path, config).environment["PATH"] == str(tmp_path / "sticky" / "bin")
    finally:
        os.environ["PATH"] = before


@pytest.mark.parametrize(
    "bad", ["/srv/x\nExecStart=/bin/false", "/srv/\x00", "/srv/\x1b[2J", "/srv/x\\", "/srv/x ", "/srv/x\u2028y"]
)
def test_a_path_that_could_add_a_line_is_refused(bad: str) -> None:
    with pytest.raises(ServiceManagerFailed):
        Systemd().rendered(plan(bad))


@pytest.mark.parametrize("wanted", ["Restart=on-failure", "StartLimitBurst=5", "NoNewPrivileges=yes", "KillMode=mixed"])
def test_a_unit_restarts_within_limits_and_gains_no_rights(wanted: str) -> None:
    assert wanted in as_text(Systemd().rendered(plan())).splitlines()


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
@pytest.mark.parametrize("with_desktop", [False, True])
def test_systemd_finds_no_fault_with_the_unit(tmp_path: Path, with_desktop: bool) -> None:
    made = make_plan(tmp_path, Config(machine_id="m", machine_name="m"), with_desktop=with_desktop)
    unit = tmp_path / "computer-linker.service"
    unit.write_bytes(Systemd().rendered(made))
    (tmp_path / "run").mkdir(mode=0o700)
    env = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path / "run")}
    done = subprocess.run(
        ["systemd-analyze", "verify", "--user", "--man=no", str(unit)], env=env, capture_output=True, text=True,
        timeout=240, check=False,
    )  # fmt: skip
    about_us = [line for line in done.stderr.splitlines() if "computer-linker" in line]
    assert (done.returncode, about_us) == (0, []), done.stderr


def test_the_plist_is_one_and_says_what_it_should() -> None:
    told = plistlib.loads(Launchd().rendered(plan()))
    assert told["Label"] == LABEL
    assert told["ProgramArguments"] == list(plan().argv)
    assert told["EnvironmentVariables"] == {"COMPUTER_LINKER_HOME": HOSTILE}
    assert told["KeepAlive"] == {"SuccessfulExit": False} and told["ThrottleInterval"] >= 10
    assert told["WorkingDirectory"] == HOSTILE


def test_the_windows_task_is_xml_and_runs_with_the_least_rights() -> None:
    raw = WindowsTask().rendered(plan())
    assert raw.startswith(b"\xff\xfe")
    task = ElementTree.fromstring(raw.decode("utf-16").partition("\n")[2])
    space = {"t": "http://schemas.microsoft.com/windows/2004/02/mit/task"}
    assert task.findtext(".//t:Exec/t:Command", namespaces=space) == "/opt/p y/python"
    assert task.findtext(".//t:RunLevel", namespaces=space) == "LeastPrivilege"
    assert task.findtext(".//t:RestartOnFailure/t:Count", namespaces=space) == "5"
    order = [child.tag.partition("}")[2] for child in task]
    assert order == ["RegistrationInfo", "Triggers", "Principals", "Settings", "Actions"]


def cli(home: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *words], env=environment(home, **env), stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=240, check=False,
    )  # fmt: skip


def test_print_shows_the_file_and_writes_none(tmp_path: Path) -> None:
    home = tmp_path / "home"
    write_config(home, tmp_path / "root", token=TOKEN)
    done = cli(home, "service", "install", "--print", XDG_CONFIG_HOME=str(tmp_path / "config"))
    assert done.returncode == 0 and "[Service]" in done.stdout
    assert f"COMPUTER_LINKER_HOME={home}" in done.stdout and TOKEN not in done.stdout
    assert not (tmp_path / "config").exists()


def test_without_a_manager_nothing_is_written(tmp_path: Path) -> None:
    home, runtime = tmp_path / "home", tmp_path / "run"
    runtime.mkdir(mode=0o700)
    write_config(home, tmp_path / "root", token=TOKEN)
    env = {"XDG_CONFIG_HOME": str(tmp_path / "config"), "XDG_RUNTIME_DIR": str(runtime), "DBUS_SESSION_BUS_ADDRESS": ""}
    done = cli(home, "service", "install", **env)
    assert done.returncode == 1 and done.stderr.startswith("error: ") and "hint: " in done.stderr
    assert not (tmp_path / "config").exists()
    assert cli(home, "service", "uninstall", **env).returncode == 0


def test_the_log_is_read_across_its_two_files(tmp_path: Path) -> None:
    (tmp_path / "service.log.1").write_text("one\ntwo\n")
    (tmp_path / "service.log").write_text("three\n")
    assert Log(tmp_path).last(2) == ["two", "three"]
    assert Log(tmp_path / "none").last(5) == []


def test_what_a_manager_answers_is_read_line_by_line() -> None:
    assert fields("a=b\nc=\nnothing\nd=e=f\n", "=") == {"a": "b", "c": "", "d": "e=f"}
    assert fields("\tstate = running\n\tpid = 12\n}", " = ") == {"state": "running", "pid": "12"}

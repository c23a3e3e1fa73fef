"""A task of the Windows scheduler. Unproven: the file is checked, but no Windows was there to try the commands on."""

import os
from pathlib import Path
from subprocess import list2cmdline
from xml.etree import ElementTree  # only written here, never read

from computer_linker.service.install.plan import Plan, ServiceStatus, ask, fields, manager_program

TASK = "Computer Linker"
_SPACE = "http://schemas.microsoft.com/windows/2004/02/mit/task"


class WindowsTask:
    """Runs at log-on as the user, with the user's own rights."""

    name = "task scheduler"
    is_proven = False

    def file(self) -> Path:
        local = os.environ.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
        return Path(local) / "ComputerLinker" / "service-task.xml"

    def rendered(self, plan: Plan) -> bytes:
        task = ElementTree.Element("Task", {"version": "1.2", "xmlns": _SPACE})
        about = ElementTree.SubElement(task, "RegistrationInfo")
        _add(about, "Description", "Computer Linker: controlled use of this computer for MCP clients")
        _add(ElementTree.SubElement(ElementTree.SubElement(task, "Triggers"), "LogonTrigger"), "Enabled", "true")
        principal = ElementTree.SubElement(ElementTree.SubElement(task, "Principals"), "Principal", {"id": "Author"})
        _add(principal, "LogonType", "InteractiveToken")
        _add(principal, "RunLevel", "LeastPrivilege")
        settings = ElementTree.SubElement(task, "Settings")
        _add(settings, "MultipleInstancesPolicy", "IgnoreNew")
        _add(settings, "DisallowStartIfOnBatteries", "false")
        _add(settings, "StopIfGoingOnBatteries", "false")
        restart = ElementTree.SubElement(settings, "RestartOnFailure")
        _add(restart, "Interval", "PT1M")
        _add(restart, "Count", "5")
        _add(settings, "ExecutionTimeLimit", "PT0S")
        run = ElementTree.SubElement(ElementTree.SubElement(task, "Actions", {"Context": "Author"}), "Exec")
        # The scheduler cannot set variables; the program finds the usual state folder by itself.
        _add(run, "Command", plan.argv[0])
        _add(run, "Arguments", list2cmdline(plan.argv[1:]))
        _add(run, "WorkingDirectory", os.fspath(plan.home))
        text: str = ElementTree.tostring(task, encoding="unicode")
        return b"\xff\xfe" + f'<?xml version="1.0" encoding="UTF-16"?>\n{text}'.encode("utf-16-le")

    def check_usable(self) -> None:
        self._ask("/Query", "/FO", "LIST", may_fail=True)

    def start(self) -> None:
        self._ask("/Create", "/TN", TASK, "/XML", os.fspath(self.file()), "/F")
        self._ask("/End", "/TN", TASK, may_fail=True)
        self._ask("/Run", "/TN", TASK)

    def status(self) -> ServiceStatus:
        output = self._ask("/Query", "/TN", TASK, "/FO", "LIST", may_fail=True)
        state = fields(output, ":").get("Status", "")
        return ServiceStatus(is_enabled=bool(state) and state != "Disabled", state=state or "not loaded")

    def remove(self) -> None:
        self._ask("/End", "/TN", TASK, may_fail=True)
        self._ask("/Delete", "/TN", TASK, "/F", may_fail=True)

    def forget(self) -> None:
        """Nothing is left to forget."""

    def _ask(self, *words: str, may_fail: bool = False) -> str:
        kept = {name: os.environ[name] for name in ("SystemRoot", "PATH", "USERPROFILE") if name in os.environ}
        return ask([manager_program("schtasks.exe"), *words], kept, may_fail=may_fail)


def _add(above: ElementTree.Element, name: str, text: str) -> None:
    ElementTree.SubElement(above, name).text = text

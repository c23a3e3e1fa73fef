"""A launchd agent. Unproven: the file is checked, but no Mac was there to try the commands on."""

import plistlib
from pathlib import Path

from computer_linker.service.install.plan import Plan, ServiceStatus, ask, fields, manager_program
from computer_linker.system import os

LABEL = "dev.computer-linker.service"


class Launchd:
    """The agent of the logged-in user."""

    name = "launchd"
    is_proven = False

    def file(self) -> Path:
        return Path.home() / "Library" / "LaunchAgents" / f"{LABEL}.plist"

    def rendered(self, plan: Plan) -> bytes:
        return plistlib.dumps(
            {
                "Label": LABEL,
                "ProgramArguments": list(plan.argv),
                "EnvironmentVariables": plan.environment,
                "WorkingDirectory": os.fspath(plan.home),
                "RunAtLoad": True,
                # Restarted on failure, not after a clean exit, and at most every ten seconds.
                "KeepAlive": {"SuccessfulExit": False},
                "ThrottleInterval": 10,
                "ExitTimeOut": 30,
                "ProcessType": "Interactive",
                "LimitLoadToSessionType": "Aqua" if plan.with_desktop else ["Aqua", "Background"],
                "Umask": 0o077,
                "HardResourceLimits": {"Core": 0},
            }
        )

    def check_usable(self) -> None:
        self._ask("version")

    def start(self) -> None:
        self._ask("bootout", f"{self._domain}/{LABEL}", may_fail=True)
        self._ask("bootstrap", self._domain, os.fspath(self.file()))
        self._ask("kickstart", "-k", f"{self._domain}/{LABEL}")

    def status(self) -> ServiceStatus:
        output = self._ask("print", f"{self._domain}/{LABEL}", may_fail=True)
        found = fields(output, " = ")
        pid = found.get("pid", "")
        return ServiceStatus(
            is_enabled=bool(found),
            state=found.get("state", "not loaded"),
            pid=int(pid) if pid.isdigit() else None,
            restarts=int(found["runs"]) - 1 if found.get("runs", "").isdigit() else None,
            detail=found.get("last exit code"),
        )

    def remove(self) -> None:
        self._ask("bootout", f"{self._domain}/{LABEL}", may_fail=True)

    def forget(self) -> None:
        """Nothing is left to forget."""

    @property
    def _domain(self) -> str:
        return f"gui/{os.getuid()}"

    def _ask(self, *words: str, may_fail: bool = False) -> str:
        return ask([manager_program("launchctl"), *words], {"PATH": "/usr/bin:/bin"}, may_fail=may_fail)

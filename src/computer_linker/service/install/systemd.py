"""A systemd user unit: restarted on failure within limits, ended cleanly, hardened as far as sandboxes still work in it."""

from pathlib import Path

from computer_linker.service.install.plan import (
    NAME,
    Plan,
    ServiceManagerFailed,
    ServiceStatus,
    ask,
    fields,
    manager_program,
)
from computer_linker.system import os

UNIT = f"{NAME}.service"
_PASSED_ON = ("HOME", "LANG", "PATH", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "DBUS_SESSION_BUS_ADDRESS")
_TEMPLATE = """\
# Written by computer-linker service install; the next install writes it again. No secret is in it.
[Unit]
Description=Computer Linker: controlled use of this computer for MCP clients
Documentation=man:systemd.service(5)
{after}StartLimitIntervalSec=300
StartLimitBurst=5

[Service]
Type=exec
ExecStart={command}
WorkingDirectory={folder}
{environment}
# SIGTERM ends it cleanly; what it started ends with it.
KillMode=mixed
TimeoutStopSec=30
Restart=on-failure
RestartSec=2
# A command that runs out of memory is ended by itself, not with the whole service.
OOMPolicy=continue
# Its control group is its own, so that each command gets a group with limits below it.
Delegate=yes
UMask=0077
LimitCORE=0
NoNewPrivileges=yes
LockPersonality=yes
RestrictRealtime=yes
# No ProtectSystem, PrivateTmp or RestrictNamespaces here: the sandbox around commands makes namespaces of its own.

[Install]
WantedBy={wanted_by}
"""


class Systemd:
    """The user's own manager; no administrator rights are needed."""

    name = "systemd"
    is_proven = True

    def file(self) -> Path:
        config = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
        return Path(config) / "systemd" / "user" / UNIT

    def rendered(self, plan: Plan) -> bytes:
        target = "graphical-session.target"
        text = _TEMPLATE.format(
            after=f"After={target}\nPartOf={target}\n" if plan.with_desktop else "",
            command=" ".join(_word(word) for word in plan.argv),
            folder=_path(os.fspath(plan.home)),
            environment="\n".join(
                f"Environment={_word(f'{k}={v}', in_command=False)}" for k, v in plan.environment.items()
            ),
            wanted_by=target if plan.with_desktop else "default.target",
        )
        return text.encode()

    def check_usable(self) -> None:
        try:
            self._ask("show-environment")
        except ServiceManagerFailed as error:
            hint = "log in to a session of your own (not by su or sudo), or run computer-linker start in a terminal"
            raise ServiceManagerFailed(f"systemd's user manager does not answer: {error.message}", hint) from error

    def start(self) -> None:
        self._ask("daemon-reload")
        # A unit that has failed too often would refuse to start until its counter is cleared.
        self._ask("reset-failed", UNIT, may_fail=True)
        self._ask("enable", UNIT)
        self._ask("restart", UNIT)

    def status(self) -> ServiceStatus:
        names = "LoadState,ActiveState,SubState,UnitFileState,MainPID,NRestarts,Result"
        properties = fields(self._ask("show", UNIT, f"--property={names}"), "=")
        pid = int(properties.get("MainPID") or 0)
        return ServiceStatus(
            is_enabled=properties.get("UnitFileState") == "enabled",
            state=properties.get("ActiveState", "unknown"),
            pid=pid or None,
            restarts=int(properties.get("NRestarts") or 0),
            detail=f"{properties.get('SubState', '')}, {properties.get('Result', '')}",
        )

    def remove(self) -> None:
        self._ask("disable", "--now", UNIT, may_fail=True)
        self._ask("reset-failed", UNIT, may_fail=True)

    def forget(self) -> None:
        """Reload after the file was removed."""
        self._ask("daemon-reload", may_fail=True)

    def _ask(self, *words: str, may_fail: bool = False) -> str:
        env = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        usual = f"/run/user/{os.getuid()}"
        if "XDG_RUNTIME_DIR" not in env and Path(usual).is_dir():
            env["XDG_RUNTIME_DIR"] = usual
        return ask([manager_program("systemctl"), "--user", "--no-pager", *words], env, may_fail=may_fail)


def _word(text: str, *, in_command: bool = True) -> str:
    """One word of a unit file: quoted, with nothing left that systemd would expand."""
    _check(text)
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped.replace("$", "$$") if in_command else escaped}"'


def _path(text: str) -> str:
    """A path as a setting takes it: not quoted, so only what is expanded is escaped."""
    _check(text)
    # A backslash there would draw the next line in, and a space would be lost: either way another folder would be served.
    if text != text.strip() or text.endswith("\\"):
        raise ServiceManagerFailed("a path ends in a way that no unit file can hold", "use another folder")
    return text.replace("%", "%%")


def _check(text: str) -> None:
    if not text.isprintable():
        raise ServiceManagerFailed("a path has a character in it that no unit file can hold", "use another folder")

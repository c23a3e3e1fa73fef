"""Shared by most commands: the state folder, its config, and the running service."""

from pathlib import Path
from typing import Any

from computer_linker import home as places
from computer_linker.cli.output import CliError
from computer_linker.config.schema import Config
from computer_linker.service.settings import live_config

_HELLO_S = 10.0


def state_home() -> Path:
    """The state folder of this command."""
    return Path(places.state_home())


def current_config(home: Path) -> Config:
    """The config as the service sees it, with the address of the tunnel it has open. Raises ConfigInvalid."""
    live = live_config(home)
    if (home / "tunnels.json").exists():
        from computer_linker.tunnels.record import read

        record = read(home)
        live.expose(record.public_url if record is not None and record.is_open else None)
    return live.current()


def running_service(home: Path) -> dict[str, Any] | None:
    """Return the running service's own status (`localUrl`); None when none runs, or it hangs."""
    from computer_linker.client.socket_client import ask_service

    try:
        return ask_service(home, {"action": "hello"}, within_s=_HELLO_S, is_question=True)
    except OSError:
        return None


def control(action: str, **request: Any) -> dict[str, Any]:
    """Send a control action to the service, starting an on-demand one when none runs. Raises CliError for a refusal."""
    from computer_linker.client.socket_client import ask_or_start

    answer = ask_or_start(state_home(), {"action": action, **request})
    if not answer.get("ok"):
        raise CliError(str(answer.get("error", "the service did not answer")), str(answer.get("hint") or ""))
    return answer

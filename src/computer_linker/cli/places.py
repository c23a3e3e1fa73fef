"""What most commands begin with: the state folder, its config, and the service if one runs."""

from pathlib import Path
from typing import Any

from computer_linker import home as places
from computer_linker.config.schema import Config
from computer_linker.service.settings import live_config


def state_home() -> Path:
    """The state folder of this command."""
    return Path(places.state_home())


def current_config(home: Path) -> Config:
    """The config as the service would see it. Raises ConfigInvalid."""
    return live_config(home).current()


def running_service(home: Path) -> dict[str, Any] | None:
    """What the running service says of itself (`localUrl`); None when none runs."""
    from computer_linker.client.socket_client import ask_service

    try:
        return ask_service(home, {"action": "hello"})
    except OSError:
        return None

"""Shared by most commands: the state folder and its config."""

from pathlib import Path

from computer_linker import home as places
from computer_linker.config.schema import Config
from computer_linker.service.settings import exposed_config


def state_home() -> Path:
    """The state folder of this command."""
    return Path(places.state_home())


def current_config(home: Path) -> Config:
    """The config as the service sees it, with the address of the tunnel it has open. Raises ConfigInvalid."""
    return exposed_config(home).current()

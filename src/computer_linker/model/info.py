"""The parts of get_computer_info."""

from typing import Literal, get_args

InfoPart = Literal["identity", "platform", "service", "tools", "scopes", "policy", "status", "operations", "exposure"]
INFO_PARTS: tuple[InfoPart, ...] = get_args(InfoPart)

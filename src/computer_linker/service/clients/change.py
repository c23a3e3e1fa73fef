"""One change of a client's settings, as a command answers it."""

from typing import Any

from computer_linker.model.base import Model


class RulesChange(Model):
    """The change of the client's own permission rules, in another file of it."""

    file: str
    rules: list[str]
    backup: str | None


class ClientChange(Model):
    client: str
    title: str
    file: str
    needed: bool
    written: bool
    backup: str | None
    diff: str
    after: str
    entry: dict[str, Any] | None = None
    permissions: RulesChange | None = None

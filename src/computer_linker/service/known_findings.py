"""Findings about the config and its folders, kept until one of them changes: comparing is quicker than looking."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

from computer_linker.config.diagnose import Finding
from computer_linker.config.load import CONFIG_NAME
from computer_linker.config.schema import Config
from computer_linker.dispatch.pause import is_desktop_halted, pause_in_force
from computer_linker.model.scope import Scope
from computer_linker.services import Services

_Found = TypeVar("_Found")
_MOST_KEPT = 64


@dataclass(frozen=True, slots=True)
class _Known:
    config: Config
    state: tuple[object, ...]
    found: Any


class KnownFindings:
    """Call it in a thread: a folder may be on a slow drive."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._known: dict[tuple[object, ...], _Known] = {}

    @classmethod
    def open(cls, services: Services) -> Self:
        return cls(services.home)

    def status(self, config: Config, scopes: list[Scope], *, serving_http: bool) -> dict[str, Any]:
        """Ready or not, of a config with these of its scopes alone: a warning names its scope."""
        from computer_linker.service.doctor import status_of

        def look() -> dict[str, Any]:
            seen = config.model_copy(update={"scopes": scopes})
            return status_of(seen, self._home, serving_http=serving_http).to_wire()

        return self._looked(("status", serving_http), config, scopes, look)

    def security(self, config: Config) -> list[Finding]:
        """What speaks against exposing this computer."""
        from computer_linker.service.doctor import security_findings

        return self._looked(("security",), config, config.scopes, lambda: security_findings(config, self._home))

    def _looked(
        self, what: tuple[object, ...], config: Config, scopes: list[Scope], look: Callable[[], _Found]
    ) -> _Found:
        key = (*what, *(scope.id for scope in scopes))
        state = self._state(scopes)
        known = self._known.get(key)
        if known is None or known.config is not config or known.state != state or None in state:
            if len(self._known) >= _MOST_KEPT:
                self._known.clear()
            known = self._known[key] = _Known(config, state, look())
        found: _Found = known.found
        return found

    def _state(self, scopes: list[Scope]) -> tuple[object, ...]:
        """What the findings depend on beside the config; None in it stands for a folder that is missing."""
        pause = pause_in_force(self._home)
        own = [_identity(path) or () for path in (self._home, self._home / CONFIG_NAME)]
        roots = [_identity(root) for scope in scopes for root in scope.roots]
        return (is_desktop_halted(self._home), "" if pause is None else str(pause.until), *own, *roots)


def _identity(path: str | Path) -> tuple[int, ...] | None:
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return (found.st_dev, found.st_ino, found.st_mode)

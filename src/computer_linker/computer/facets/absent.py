"""A placeholder for a missing facet: every use raises the reason and the remedy."""

from typing import Any, NoReturn

from computer_linker.computer.manifest import FacetState
from computer_linker.errors import LinkError, OsPermissionRequired, UnsupportedPlatform


class Absent:
    """Takes the place of a missing facet. Any method raises; `state` is its entry in the manifest."""

    def __init__(self, facet: str, reason: str, remedy: str = "", error: type[LinkError] = UnsupportedPlatform) -> None:
        blocked = error is OsPermissionRequired
        self.state = FacetState(state="blocked" if blocked else "missing", reason=reason, remedy=remedy)
        self._facet = facet
        self._error = error

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._refuse

    def _refuse(self, *_given: object, **_named: object) -> NoReturn:
        sentence = f"{self.state.reason} {self.state.remedy}".strip()
        raise self._error(sentence, facet=self._facet, remedy=self.state.remedy)

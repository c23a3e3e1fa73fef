"""The capability manifest: for each facet present, blocked or missing, the reason and the remedy."""

from typing import Annotated, Any, Literal, NoReturn

from pydantic import Field

from computer_linker.errors import LinkError, OsPermissionRequired, UnsupportedPlatform
from computer_linker.model.base import Model

FacetName = Literal[
    "files", "processes", "facts", "screen", "pointer", "keyboard", "windows", "apps", "clipboard", "accessibility",
    "notifications",
]  # fmt: skip
FACETS: tuple[FacetName, ...] = (
    "files", "processes", "facts", "screen", "pointer", "keyboard", "windows", "apps", "clipboard", "accessibility",
    "notifications",
)  # fmt: skip


class FacetState(Model):
    """The state of one facet."""

    state: Annotated[
        Literal["present", "blocked", "missing"],
        Field(description="`blocked` means the system wants a grant first; `missing` means it cannot be had here."),
    ]
    backend: Annotated[str, Field(description="What provides it, such as x11.")] = ""
    is_proven: Annotated[bool, Field(description="False where no test has run on the real system yet.")] = True
    reason: str = ""
    remedy: str = ""


class Manifest(Model):
    """Every facet and its state."""

    facets: dict[str, FacetState]

    def has(self, facet: FacetName) -> bool:
        """True when the facet can be used now."""
        found = self.facets.get(facet)
        return found is not None and found.state == "present"


# A placeholder for a missing facet: every use raises the reason and the remedy.


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

"""The capability manifest: for each facet present, blocked or missing, the reason and the remedy."""

from typing import Annotated, Literal

from pydantic import Field

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

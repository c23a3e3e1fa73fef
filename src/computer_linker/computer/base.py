"""Computer: one attribute a facet."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from computer_linker.computer.facets.files import Files


class Computer:
    """A machine as a set of facets. Subclasses provide each facet they have."""

    files: "Files"

    async def aclose(self) -> None:
        """Let go of what the facets hold."""

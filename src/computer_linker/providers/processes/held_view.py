"""The view that a command runs in, held from its planning to its end."""

from dataclasses import dataclass, replace
from typing import Protocol

from computer_linker.errors import ProviderUnavailable
from computer_linker.model.scope import OutcomeMode
from computer_linker.providers.sandbox.boundary import Boundary, Confinement


class ViewUse(Protocol):
    """The view that a command runs in."""

    async def hold(self) -> tuple[int, ...]:
        """Open the folders that take the changes, in the order of the roots; the command counts as running from now on."""
        ...

    def ended(self) -> None:
        """The command has ended, or was not started after all."""
        ...


@dataclass(slots=True)
class HeldView:
    """The view of one command, from the moment it is held until the command has ended."""

    view: ViewUse | None
    writes: bool
    """Whether the command may write the scope's folders."""
    outcome: OutcomeMode
    is_held: bool = False

    def refuse_without(self, boundary: Boundary) -> None:
        """Refuse a view where the boundary cannot make one, and a program that would bypass the scope's rule."""
        if self.view is None and self.writes and self.outcome != "direct":
            raise ProviderUnavailable(
                "This scope puts the changes of programs on a view, and this kind of program cannot run on one yet.",
                remedy="Use command.run or package.run, or set the scope's `outcome` to `direct`.",
            )
        if self.view is not None and boundary.kind != "bubblewrap":
            raise ProviderUnavailable(
                "A view needs bubblewrap, which is not the boundary here, so nothing was run.",
                remedy="Install bubblewrap, or set the scope's `outcome` to `direct`.",
            )

    async def applied(self, confinement: Confinement, held: list[int]) -> Confinement:
        """The confinement with the view's folders; unchanged where the command may not write."""
        if self.view is None or not confinement.writable:
            return confinement
        stores = await self.view.hold()
        held.extend(stores)
        self.is_held = True
        viewed = zip(confinement.writable, stores, strict=True)
        return replace(confinement, writable=tuple(replace(folder, view=store) for folder, store in viewed))

    def release(self) -> None:
        if self.is_held and self.view is not None:
            self.is_held = False
            self.view.ended()

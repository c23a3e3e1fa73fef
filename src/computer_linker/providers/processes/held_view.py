"""The view that a command runs in: held while it is prepared and while it runs."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from computer_linker.computer.facets.processes import Child
from computer_linker.errors import ProviderUnavailable
from computer_linker.providers.sandbox.boundary import Boundary, Confinement, Store

if TYPE_CHECKING:
    from computer_linker.providers.processes.prepare import CommandRequest


class ViewUse(Protocol):
    """The view that a command runs in."""

    async def hold(self) -> tuple[Store, ...]:
        """Open the folders that take the changes, in the order of the roots; the command counts as running from now on."""
        ...

    def guard(self, child: Child) -> None:
        """Bound what the started command puts in the view."""
        ...

    def ended(self) -> None:
        """The command has ended, or was not started after all."""
        ...


@dataclass(slots=True)
class HeldView:
    """The view of one command, from the moment it is held until the command has ended."""

    request: "CommandRequest"
    is_held: bool = False
    named: str = ""
    """The part of a result's `boundary` about it."""

    def refuse_without(self, boundary: Boundary) -> None:
        """Refuse a view where the boundary cannot make one, and a program that would bypass the scope's rule."""
        request = self.request
        if request.view is None and request.writes and request.scope.policy.outcome != "direct":
            raise ProviderUnavailable(
                "This scope puts the changes of programs on a view, and this kind of program cannot run on one.",
                remedy="Use command.*, package.* or codex.*, or set the scope's `outcome` to `direct`.",
            )
        if request.view is not None and boundary.kind != "bubblewrap":
            raise ProviderUnavailable(
                "A view needs bubblewrap, which is not the boundary here, so nothing was run.",
                remedy="Install bubblewrap, or set the scope's `outcome` to `direct`.",
            )

    async def applied(self, confinement: Confinement, held: list[int]) -> Confinement:
        """The confinement with the view's folders; unchanged where the command may not write."""
        if self.request.view is None or not confinement.writable:
            return confinement
        stores = await self.request.view.hold()
        held.extend(store.fd for store in stores)
        self.is_held = True
        self.named = "; view: a copy of the folder" if stores[0].is_copy else "; view: overlay"
        if self.request.program_access is not None:
            return _with_viewed_agent(confinement, self.request, stores)
        viewed = zip(confinement.writable, stores, strict=True)
        return replace(confinement, writable=tuple(replace(folder, view=store) for folder, store in viewed))

    def guard(self, child: Child) -> None:
        if self.is_held and self.request.view is not None:
            self.request.view.guard(child)

    def release(self) -> None:
        if self.is_held and self.request.view is not None:
            self.is_held = False
            self.request.view.ended()


def _with_viewed_agent(confinement: Confinement, request: "CommandRequest", stores: tuple[Store, ...]) -> Confinement:
    """The confinement of an agent on a view: of its whole root, of which it writes only the working folder."""
    (working,) = confinement.writable
    store = stores[[root.root for root in request.roots].index(request.cwd.root)]
    if not working.above:
        return replace(confinement, writable=(replace(working, view=store),))
    top = working.path[: -len("/".join(working.above)) - 1] or "/"
    whole = next(folder for folder in confinement.readable if folder.path == top)
    readable = tuple(folder for folder in confinement.readable if folder is not whole)
    viewed = replace(whole, view=replace(store, only=working.above))
    return replace(confinement, writable=(viewed,), readable=readable)

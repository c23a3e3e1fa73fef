"""The common definition of acts on a page, so that every one has an approval preview."""

from collections.abc import Awaitable, Callable
from typing import Any

from computer_linker.model.capability import Capability
from computer_linker.model.effect import Effect
from computer_linker.operations.browser.preview import show_page_act
from computer_linker.registry import Example, Operation, operation
from computer_linker.registry.operation import Shows


def page_act(
    name: str, example: Example, *, also_needs: Capability | None = None, shows: Shows = show_page_act
) -> Callable[[Callable[..., Awaitable[Any]]], Operation]:
    """Define an act on an element of the open page."""
    return operation(
        name,
        needs={Capability.COMMAND_RUN, *(() if also_needs is None else (also_needs,))},
        effect=Effect.ACT,
        boundary="sandboxed",
        awaits_intent=True,
        shows=shows,
        examples=[example],
    )

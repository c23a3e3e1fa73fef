"""The common definition of acts on a page, so that every one has an approval preview."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from computer_linker.model.capability import Capability
from computer_linker.model.effect import Effect
from computer_linker.operations.browser.preview import Fits, show_page_act
from computer_linker.registry import Example, Operation, operation


def page_act(
    name: str, example: Example, *, also_needs: Capability | None = None, fits: Fits | None = None
) -> Callable[[Callable[..., Awaitable[Any]]], Operation]:
    """Define an act on an element of the open page; `fits` refuses elements of another kind before a person is asked."""
    return operation(
        name,
        needs={Capability.COMMAND_RUN, *(() if also_needs is None else (also_needs,))},
        effect=Effect.ACT,
        boundary="sandboxed",
        awaits_intent=True,
        shows=show_page_act if fits is None else partial(show_page_act, fits=fits),
        examples=[example],
    )

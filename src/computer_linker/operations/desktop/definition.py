"""What every act on the desktop has in common, so that none forgets to wait its turn or to be shown before a yes."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Literal

from computer_linker.model.capability import Capability
from computer_linker.model.effect import Effect
from computer_linker.operations.desktop.showing import show_act, show_window
from computer_linker.registry import Example, Operation, operation


def desktop_act(
    name: str,
    by: Literal["pointer", "keyboard"],
    *,
    examples: Iterable[Example],
    deadline_s: float = 20,
    aliases: Iterable[str] = (),
) -> Callable[[Callable[..., Awaitable[Any]]], Operation]:
    """The definition of an act by pointer or keyboard."""
    return operation(
        name,
        needs={Capability.DESKTOP_CONTROL},
        effect=Effect.ACT,
        on="computer",
        boundary="desktop",
        lane="desktop",
        shows=show_act,
        deadline_s=deadline_s,
        facets=(by,),
        aliases=aliases,
        examples=examples,
    )


def window_act(
    name: str, example: Example, *, destructive: bool = False
) -> Callable[[Callable[..., Awaitable[Any]]], Operation]:
    """The definition of an act on a whole window."""
    return operation(
        name,
        needs={Capability.DESKTOP_CONTROL},
        effect=Effect.ACT,
        on="computer",
        boundary="desktop",
        lane="desktop",
        shows=show_window,
        deadline_s=15,
        destructive=destructive,
        facets=("windows",),
        examples=[example],
    )

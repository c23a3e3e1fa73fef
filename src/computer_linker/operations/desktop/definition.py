"""The common definition of desktop acts, so that every one uses the device queue and has an approval preview."""

from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any, Literal

from computer_linker.operations.desktop.preview import show_act, show_window
from computer_linker.registry import Capability, Effect, Example, Operation, operation

Define = Callable[[Callable[..., Awaitable[Any]]], Operation]
_act = partial(
    operation,
    needs={Capability.DESKTOP_CONTROL},
    effect=Effect.ACT,
    on="computer",
)


def desktop_act(
    name: str,
    by: Literal["pointer", "keyboard"],
    *,
    did: str,
    examples: Iterable[Example],
    deadline_s: float = 20,
    aliases: Iterable[str] = (),
) -> Define:
    """Define an act by pointer or keyboard."""
    return _act(name, did=did, shows=show_act, facets=(by,), deadline_s=deadline_s, aliases=aliases, examples=examples)


def window_act(name: str, did: str, example: Example, *, destructive: bool = False) -> Define:
    """Define an act on a whole window."""
    return _act(
        name,
        did=did,
        shows=show_window,
        facets=("windows",),
        deadline_s=15,
        destructive=destructive,
        examples=[example],
    )

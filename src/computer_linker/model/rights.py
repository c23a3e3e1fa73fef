"""What policy needs of an operation, so that policy does not import the registry."""

from collections.abc import Callable
from typing import Protocol

from computer_linker.model.capability import Capability
from computer_linker.model.effect import Effect
from computer_linker.model.scope import ScopeKind, ScopePolicy


class Rights(Protocol):
    """The rights an operation asks for."""

    @property
    def name(self) -> str: ...
    @property
    def needs(self) -> frozenset[Capability]: ...
    @property
    def needs_any(self) -> frozenset[Capability]: ...
    @property
    def effect(self) -> Effect: ...
    @property
    def on(self) -> ScopeKind: ...
    @property
    def asked_by(self) -> Callable[[ScopePolicy], bool] | None: ...

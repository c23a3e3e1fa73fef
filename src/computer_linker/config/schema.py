"""config.json as the wire contract has it."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from computer_linker.model.base import Model
from computer_linker.model.scope import Scope


class Config(Model):
    """One computer and its scopes."""

    schema_version: Literal[1] = 1
    machine_id: Annotated[str, Field(min_length=1, max_length=128)]
    machine_name: Annotated[str, Field(min_length=1, max_length=128)]
    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 3939
    owner_token: Annotated[str, Field(min_length=16)] | None = None
    public_base_url: str | None = None
    scopes: list[Scope] = []

    @model_validator(mode="after")
    def _ids_are_unique(self) -> "Config":
        seen: set[str] = set()
        for scope in self.scopes:
            if scope.id in seen:
                raise ValueError(f"two scopes have the id {scope.id!r}")
            seen.add(scope.id)
        return self

    def scope(self, scope_id: str) -> Scope | None:
        """The scope of exactly this id; never a match by path or name."""
        for scope in self.scopes:
            if scope.id == scope_id:
                return scope
        return None

"""The one base of every model on the wire: frozen, strict, closed, camelCase outside and snake_case inside."""

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema


class Older:
    """Marks a field that only older clients send: it is accepted, schemas call it deprecated, and signatures leave it out."""

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {**handler(core), "deprecated": True}


class ForModels:
    """Marks an option that has another default where the answer is rendered for a model."""

    def __init__(self, default: Any) -> None:
        self.default = default


class Model(BaseModel):
    """A frozen value. Fields are snake_case in Python and camelCase on the wire; unknown fields are refused."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        defer_build=True,
        protected_namespaces=(),
    )

    @classmethod
    def from_wire(cls, value: Any) -> Self:
        """Parse a wire value: camelCase names only."""
        return cls.model_validate(value, by_alias=True, by_name=False)

    def to_wire(self) -> dict[str, Any]:
        """The camelCase object as plain JSON values."""
        return self.model_dump(mode="json", by_alias=True)

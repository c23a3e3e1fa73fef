"""Selectors: match elements by role, name, value and state."""

from typing import Annotated, Self

from pydantic import AliasChoices, Field, model_validator

from computer_linker.model.base import Model
from computer_linker.providers.ui.outline import Line
from computer_linker.providers.ui.roles import roles_called

Text = Annotated[str, Field(min_length=1, max_length=500)]


class Selector(Model):
    """Conditions on an element, at least one; texts are compared case-insensitively."""

    role: Annotated[
        Text | None,
        Field(
            validation_alias=AliasChoices("role", "byRole"),
            description="A role such as push-button, or a family such as button or textbox.",
        ),
    ] = None
    name: Annotated[Text | None, Field(description="The whole name.")] = None
    name_contains: Annotated[
        Text | None,
        Field(validation_alias=AliasChoices("nameContains", "titleContains"), description="A part of the name."),
    ] = None
    value_contains: Annotated[Text | None, Field(description="A part of the text or value.")] = None
    states: Annotated[
        list[Annotated[str, Field(max_length=40)]],
        Field(max_length=16, description="States it must be in, such as checked; `not-checked` for the opposite."),
    ] = []
    limit: Annotated[int, Field(ge=1, le=100, description="How many to return.")] = 10

    @model_validator(mode="after")
    def _has_condition(self) -> Self:
        if not (self.role or self.name or self.name_contains or self.value_contains or self.states):
            raise ValueError("a selector needs at least one of role, name, nameContains, valueContains and states")
        return self

    def fits(self, line: Line) -> bool:
        """True when a line of an outline matches."""
        one = line.element
        return (
            (self.role is None or one.role in roles_called(self.role))
            and (self.name is None or line.name.strip().casefold() == self.name.strip().casefold())
            and (self.name_contains is None or self.name_contains.casefold() in line.name.casefold())
            and (self.value_contains is None or self.value_contains.casefold() in (one.value or "").casefold())
            and all(_in_state(line, state) for state in self.states)
        )


def _in_state(line: Line, state: str) -> bool:
    wanted = state.strip().lower().replace("_", "-").replace(" ", "-")
    if wanted.startswith("not-"):
        return not _in_state(line, wanted[4:])
    return wanted in line.states


def select(selector: Selector, lines: list[Line]) -> list[Line]:
    """The matching lines, those on the screen first, an exact name before a partial one."""
    found = [line for line in lines if selector.fits(line)]
    wanted = (selector.name or selector.name_contains or "").strip().casefold()
    return sorted(
        found, key=lambda line: (not line.is_showing, bool(wanted) and line.name.strip().casefold() != wanted)
    )

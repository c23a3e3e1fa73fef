"""Calls on a desktop, aimed at one form."""

from typing import Any

from support.forms import Form
from support.road import Road


class Session:
    """Calls on the desktop's scope, aimed at one form."""

    def __init__(self, road: Road, form: Form) -> None:
        self.road = road
        self.form = form

    async def call(self, op: str, target: Any = None, **parts: Any) -> dict[str, Any]:
        return await self.road.call(op, target, scope="desk", **parts)

    async def data(self, op: str, target: Any = None, **parts: Any) -> dict[str, Any]:
        return await self.road.data(op, target, scope="desk", **parts)

    def at(self, role: str | None = None, name: str | None = None, **more: Any) -> dict[str, Any]:
        """A target in the form, by role and name."""
        selector = {key: value for key, value in {"role": role, "name": name, **more}.items() if value is not None}
        return {"selector": selector, "route": {"app": self.form.app}}

    async def find(self, role: str | None = None, name: str | None = None) -> list[dict[str, Any]]:
        found = await self.data(
            "desktop.find", {"app": self.form.app}, input={"selector": self.at(role, name)["selector"]}
        )
        elements: list[dict[str, Any]] = found["elements"]
        return elements

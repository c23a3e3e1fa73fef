"""Calls on a desktop, aimed at one form, on the road itself or over MCP."""

import json
from typing import Any, Protocol

from anyio import to_thread

from support.forms import Form
from support.road import Road
from support.service import Http


class Caller(Protocol):
    """Takes wire-shaped calls and gives envelopes."""

    async def call(self, op: str, target: Any = None, **parts: Any) -> dict[str, Any]: ...

    async def data(self, op: str, target: Any = None, **parts: Any) -> dict[str, Any]: ...


class McpRoad:
    """A running service, used as a client would: through its three tools, over HTTP. `done` is what was asked of it."""

    def __init__(self, http: Http) -> None:
        self._http = http
        self.done: list[dict[str, Any]] = []
        self.images: list[dict[str, Any]] = []

    async def tool(self, name: str, **arguments: Any) -> dict[str, Any]:
        """One tool call's answer; the pictures beside it are in `images`."""
        params = {"name": name, "arguments": arguments}
        result = (await to_thread.run_sync(lambda: self._http.modern("tools/call", params)))["result"]
        self.images = [block for block in result["content"] if block["type"] == "image"]
        answer: dict[str, Any] = json.loads(result["content"][0]["text"])
        assert result["isError"] is (answer.get("ok") is False)
        return answer

    async def call(self, op: str, target: Any = None, **parts: Any) -> dict[str, Any]:
        """One operation's envelope."""
        given = parts if target is None else {"target": target, **parts}
        answer = await self.tool("computer_operation", op=op, **given)
        self.done.append(answer)
        return answer

    async def data(self, op: str, target: Any = None, **parts: Any) -> dict[str, Any]:
        """The data of an operation that must succeed."""
        answer = await self.call(op, target, **parts)
        assert answer["ok"], answer
        data: dict[str, Any] = answer["data"]
        return data


class Session:
    """Calls on the desktop's scope, aimed at one form."""

    def __init__(self, road: Caller | Road, form: Form, where: str = "") -> None:
        self.where = where
        self.road: Any = road
        """As it was given; only the road itself has a service to look into."""
        self.form = form

    async def call(self, op: str, target: Any = None, **parts: Any) -> dict[str, Any]:
        envelope: dict[str, Any] = await self.road.call(op, target, scope="desk", **parts)
        return envelope

    async def data(self, op: str, target: Any = None, **parts: Any) -> dict[str, Any]:
        data: dict[str, Any] = await self.road.data(op, target, scope="desk", **parts)
        return data

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

"""MCP resources: files, artifacts, outputs of processes and history of each scope, read by the operations that read them.

Every listing and reading is an operation of the caller, judged and recorded like any other.
"""

import base64
import json
import re
from typing import Any
from urllib.parse import quote, unquote

from pydantic_core import to_jsonable_python

from computer_linker.errors import InvalidRequest, LinkError, NotFound
from computer_linker.model.envelope import Reply, error_in
from computer_linker.model.principal import Principal
from computer_linker.transports.mcp.tools import Tools

TEMPLATES: list[dict[str, Any]] = [
    {
        "uriTemplate": "linker://{scope}/file/{+path}",
        "name": "file",
        "title": "A file or folder of a scope",
        "description": "The text of a file, or the entries of a folder, beneath the scope's root.",
    },
    {
        "uriTemplate": "linker://{scope}/artifact/{id}",
        "name": "artifact",
        "title": "An artifact of a scope",
        "description": "Captures, recordings, evidence and other kept outputs.",
    },
    {
        "uriTemplate": "linker://{scope}/output/{processId}",
        "name": "output",
        "title": "The output of a process",
        "description": "What a process that command.start started has printed.",
        "mimeType": "text/plain",
    },
    {
        "uriTemplate": "linker://{scope}/history",
        "name": "history",
        "title": "The history of a scope",
        "description": "The newest operations in the scope, as far as the caller may see them.",
        "mimeType": "application/json",
    },
]
_URI = re.compile(r"linker://([A-Za-z0-9][A-Za-z0-9._-]{0,63})/(file|artifact|output|history)(?:/(.*))?", re.DOTALL)
_MAX_URI = 8192
_MOST = 200
"""The most artifacts and processes listed of one scope."""


class Resources:
    """Lists and reads resources as one caller."""

    def __init__(self, tools: Tools, who: Principal) -> None:
        self._tools, self._who = tools, who

    async def scopes(self) -> list[dict[str, Any]]:
        """The scopes that the caller sees."""
        reply = await self._tools.call("get_computer_info", {"include": ["scopes"]}, self._who, None, None)
        found: list[dict[str, Any]] = _checked(reply).get("scopes", [])
        return found

    async def listed(self) -> list[dict[str, Any]]:
        """What can be read now: each scope's folder, artifacts, processes and history, as far as the caller may."""
        found: list[dict[str, Any]] = []
        for scope in await self.scopes():
            name, may = scope["id"], set(scope.get("allowedOperations", []))
            if "file.list" in may:
                found.append(_resource(name, "file/", f"{name}: files"))
            if "history.last" in may:
                found.append(_resource(name, "history", f"{name}: history", "application/json"))
            if "artifact.list" in may:
                for each in (await self._data(name, "artifact.list"))["artifacts"][:_MOST]:
                    found.append(
                        _resource(name, f"artifact/{each['id']}", f"{name}: {each['kind']}", each.get("mediaType"))
                    )
            if "command.list" in may:
                for each in (await self._data(name, "command.list"))["processes"][:_MOST]:
                    found.append(
                        _resource(
                            name, f"output/{each['processId']}", f"{name}: {each['commandPreview']}", "text/plain"
                        )
                    )
        return found

    async def read(self, uri: str) -> list[dict[str, Any]]:
        """The contents of a resource. Raises LinkError for one that does not exist or may not be read."""
        found = _URI.fullmatch(uri) if len(uri) <= _MAX_URI else None
        if found is None:
            raise NotFound("There is no such resource.", uri=uri[:200])
        scope, kind, rest = found[1], found[2], unquote(found[3] or "")
        match kind:
            case "file":
                return await self._file(scope, rest, uri)
            case "artifact":
                return await self._artifact(scope, rest, uri)
            case "output":
                data = await self._data(scope, "command.read", rest, {"maxBytes": 1_000_000})
                return [_text(uri, "".join(chunk["text"] for chunk in data["chunks"]), "text/plain")]
            case _:
                if rest:
                    raise NotFound("There is no such resource.", uri=uri[:200])
                return [_text(uri, _json(await self._data(scope, "history.last")), "application/json")]

    async def completions(self, argument: str, value: str, scope: str) -> list[str]:
        """Values of a template's variable or a prompt's argument that begin as given."""
        if argument == "scope":
            names = [each["id"] for each in await self.scopes()]
        elif argument == "path":
            folder = value.rpartition("/")[0]
            entries = (await self._data(scope, "file.list", folder or "."))["entries"]
            names = [f"{each['path']}/" if each["type"] == "directory" else each["path"] for each in entries]
        elif argument == "id":
            names = [each["id"] for each in (await self._data(scope, "artifact.list"))["artifacts"]]
        elif argument == "processId":
            names = [each["processId"] for each in (await self._data(scope, "command.list"))["processes"]]
        elif argument == "operationId":
            events = (await self._data(scope, "history.last"))["events"]
            names = [each["operationId"] for each in events if not each["ok"]]
        else:
            return []
        return [name for name in names if name.startswith(value)][:100]

    async def _file(self, scope: str, path: str, uri: str) -> list[dict[str, Any]]:
        facts = await self._data(scope, "file.stat", path or ".")
        if facts["type"] != "file":
            return [_text(uri, _json(await self._data(scope, "file.list", path or ".")), "application/json")]
        data = await self._data(scope, "file.read", path, {"maxBytes": 1_000_000, "encoding": "base64"})
        raw = base64.b64decode(data["content"])
        try:
            return [_text(uri, raw.decode("utf-8"), "text/plain")]
        except UnicodeDecodeError:
            return [{"uri": uri, "mimeType": "application/octet-stream", "blob": data["content"]}]

    async def _artifact(self, scope: str, artifact: str, uri: str) -> list[dict[str, Any]]:
        data = await self._data(scope, "artifact.read", artifact, {"return": "base64", "maxBytes": 4_000_000})
        media = data["artifact"].get("mediaType") or "application/octet-stream"
        if media in ("text/plain", "application/json"):
            return [_text(uri, base64.b64decode(data["bytesBase64"]).decode("utf-8", "replace"), media)]
        return [{"uri": uri, "mimeType": media, "blob": data["bytesBase64"]}]

    async def _data(self, scope: str, op: str, target: str | None = None, options: Any = None) -> dict[str, Any]:
        call = {"scope": scope, "op": op, "target": target, "options": options}
        given = {name: value for name, value in call.items() if value is not None}
        data: dict[str, Any] = _checked(await self._tools.call("computer_operation", given, self._who, None, None))[
            "data"
        ]
        return data


def _checked(reply: Reply) -> dict[str, Any]:
    envelope: dict[str, Any] = to_jsonable_python(reply.envelope, by_alias=True)
    if not envelope.get("ok", True):
        raise error_in(envelope)
    return envelope


def code_of(error: LinkError, *, is_modern: bool) -> int:
    """The protocol's error code: a resource that is not there has its own before 2026-07-28."""
    if isinstance(error, InvalidRequest) or is_modern:
        return -32602
    return -32002


def _resource(scope: str, rest: str, title: str, mime: str | None = None) -> dict[str, Any]:
    uri = f"linker://{scope}/{quote(rest, safe='/')}"
    return {"uri": uri, "name": rest.rstrip("/"), "title": title, **({"mimeType": mime} if mime else {})}


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _text(uri: str, text: str, mime: str) -> dict[str, Any]:
    return {"uri": uri, "mimeType": mime, "text": text}

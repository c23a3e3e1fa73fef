"""The problems a server reports in files: pulled, asked of tsserver, or published for a version; now and before a change."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from computer_linker.errors import LinkError
from computer_linker.model.paths import RootedPath
from computer_linker.providers.language.server import Document, Server
from computer_linker.providers.language.tracked import Parts
from computer_linker.providers.language.uris import uri_of

_ANSWER_S = 60.0
_PUBLISHED_S = 30.0
_TSSERVER = "typescript.tsserverRequest"
_TS_SEVERITY = {"error": 1, "warning": 2, "suggestion": 4}
Problem = dict[str, Any]


class Compared(NamedTuple):
    """A file's problems now, and before a change where that is known."""

    document: Document
    now: list[Problem]
    then: list[Problem] | None


async def compared(
    server: Server, files: Sequence[RootedPath], before: Mapping[Parts, Document | None] | None = None
) -> list[Compared]:
    """The problems of files. `before` has their earlier contents, None for a file that did not exist.

    The earlier contents are shown to the server alone: no other request sees them, and the files are not touched.
    """
    server.active += 1
    try:
        async with server.turn():
            documents = await server.synced(files)
            then = {} if before is None else await _earlier(server, documents, before)
            return [Compared(one, await _problems(server, one), then.get(one.parts)) for one in documents]
    finally:
        server.active -= 1


async def _earlier(
    server: Server, documents: Sequence[Document], before: Mapping[Parts, Document | None]
) -> dict[Parts, list[Problem]]:
    """The problems of each file while the server has the earlier contents of all of them."""
    present = {one.parts: one for one in documents}
    for parts in before.keys() - present.keys():
        with suppress(LinkError):
            (present[parts],) = await server.synced([RootedPath(server.root, parts, server.rules)])
    earlier = {parts: one for parts, one in before.items() if one is not None and parts in present}
    then: dict[Parts, list[Problem]] = {one.parts: [] for one in documents if one.parts in before}
    try:
        for document in earlier.values():
            server.show(document)
        for one in documents:
            if one.parts in earlier:
                then[one.parts] = await _problems(server, earlier[one.parts])
    finally:
        for parts in earlier:
            server.show(present[parts])
    return then


async def _problems(server: Server, document: Document) -> list[Problem]:
    uri = uri_of("/".join((server.root, *document.parts)))
    if server.can("diagnosticProvider"):
        answer = await server.wire.result(
            server.wire.ask("textDocument/diagnostic", {"textDocument": {"uri": uri}}), _ANSWER_S
        )
        items = answer.get("items") if isinstance(answer, dict) else None
        return [each for each in items or [] if isinstance(each, dict)]
    if server.kind.name == "typescript-language-server":
        return await _of_tsserver(server, "/".join((server.root, *document.parts)))
    version, _ = server.opened[document.parts]
    return await server.pushed(uri, version, _PUBLISHED_S)


async def _of_tsserver(server: Server, path: str) -> list[Problem]:
    """Ask tsserver itself: what the server publishes comes in parts, without saying which version it is about."""
    found: list[Problem] = []
    for command in ("syntacticDiagnosticsSync", "semanticDiagnosticsSync"):
        params = {"command": _TSSERVER, "arguments": [command, {"file": path, "includeLinePosition": False}]}
        answer = await server.wire.result(server.wire.ask("workspace/executeCommand", params), _ANSWER_S)
        body = answer.get("body") if isinstance(answer, dict) else None
        found += [_from_tsserver(each) for each in body or [] if isinstance(each, dict)]
    return found


def _from_tsserver(each: Mapping[str, Any]) -> Problem:
    def position(side: str) -> dict[str, int]:
        at = each.get(side) or {}
        return {"line": max(0, int(at.get("line", 1)) - 1), "character": max(0, int(at.get("offset", 1)) - 1)}

    return {
        "range": {"start": position("start"), "end": position("end")},
        "severity": _TS_SEVERITY.get(str(each.get("category")), 3),
        "code": each.get("code"),
        "source": "typescript",
        "message": str(each.get("text", "")),
    }


def is_new(problem: Problem, left: list[tuple[Any, ...]]) -> bool:
    """Whether a problem is none of those before; one that is, is used up. Lines move, so they do not count."""
    key = key_of(problem)
    if key in left:
        left.remove(key)
        return False
    return True


def key_of(problem: Problem) -> tuple[Any, ...]:
    return problem.get("severity"), str(problem.get("code")), problem.get("message")

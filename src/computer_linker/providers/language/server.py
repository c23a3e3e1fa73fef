"""One running language server: its documents, what changed in its root, and its answers."""

import hashlib
import logging
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import anyio
import anyio.to_thread

from computer_linker.computer.facets.processes import Child, Ended
from computer_linker.errors import InvalidRequest, LinkError, ProcessNotFound, ProviderUnavailable, TimedOut
from computer_linker.model.paths import PathRules, RootedPath
from computer_linker.providers.held import held
from computer_linker.providers.language.capabilities import CLIENT
from computer_linker.providers.language.servers import Kind, kind_of, language_id
from computer_linker.providers.language.text import Lines
from computer_linker.providers.language.tracked import Parts, Tracked
from computer_linker.providers.language.uris import uri_of
from computer_linker.providers.language.wire import CONTENT_MODIFIED, SERVER_CANCELLED, ServerError, Wire
from computer_linker.providers.processes.streams import Feed, HeadTail, Pump, close_streams
from computer_linker.system import os

log = logging.getLogger(__name__)
MAX_FILE = 4 << 20
_MAX_OPEN = 48
_ANSWER_S = 60.0
_START_S = 60.0
_ATTEMPTS = 4
_SETTLE_S = 20.0
_LOADED_S = 30.0
_MAX_PROBLEMS, _MAX_TASKS = 10_000, 1000
"""Problems of one file, and tasks that a server reports as running."""
_TYPES = {"created": 1, "changed": 2, "deleted": 3}


@dataclass(frozen=True, slots=True)
class Document:
    """A file's text as the server has it."""

    parts: Parts
    text: str
    digest: str
    """SHA-256 of the file's bytes."""
    is_utf8: bool


class Server:
    """A language server process that waits at its start gate until `start`."""

    def __init__(
        self,
        kind: Kind,
        root: str,
        rules: PathRules,
        child: Child,
        options: Mapping[str, Any],
        release: Callable[[], None],
    ) -> None:
        self.kind, self.root, self.rules = kind, root, rules
        self.program = ""
        self.used_at = time.monotonic()
        self.abilities: dict[str, Any] = {}
        self.is_ready = False
        self._child, self._release, self._options = child, release, options
        self._stderr = HeadTail(8192)
        assert child.stdin is not None, "a server is started with its input"
        self._feed = Feed(child.stdin)
        self.wire = Wire(self._feed, self._asked, self._noted, child.kill)
        self._pumps = [Pump(child.stdout, self.wire.take)]
        if child.stderr is not None:
            self._pumps.append(Pump(child.stderr, self._stderr.feed))
        self.tracked = Tracked(root, rules)
        self.opened: OrderedDict[Parts, tuple[int, Document]] = OrderedDict()
        self._uris: set[str] = set()
        """Of the opened documents. What is reported of others is not kept: a project can make its server report any number."""
        self.lines: OrderedDict[Parts, Lines] = OrderedDict()
        """Texts of files that answers pointed to, dropped when a file changes."""
        self._turn = anyio.Lock()
        self._versions = 0
        self.published: dict[str, tuple[int | None, list[dict[str, Any]]]] = {}
        self._news = anyio.Event()
        self._running_tasks: set[str] = set()
        self._is_listed = not kind.listed
        self._is_loaded = not kind.reports_ready
        self._file_states: dict[str, str] = {}
        """Of a server that reports them (clangd): `busy` or `idle`, by URI."""
        self.active = 0
        """Calls that wait for it now."""
        self.ended: Ended | None = None

    @property
    def is_running(self) -> bool:
        return self.ended is None and self.wire.is_open

    @property
    def pid(self) -> int:
        return self._child.pid

    def crashed(self) -> ProviderUnavailable:
        """The failure of a request whose server ended, with the limits it reached."""
        reached = () if self.ended is None else self.ended.reached
        limits = "".join(f" It reached its limit of {name} ({value})." for name, value in reached)
        return ProviderUnavailable(
            f"{self.kind.name} ended before it answered.{limits} It is started again with the next request.",
            reason="ended",
            reached=[name for name, _ in reached],
        )

    def last_errors(self) -> str:
        """The end of what it printed as errors."""
        return self._stderr.text(600)[0].strip()

    async def start(self) -> None:
        """Let it start and shake hands; the root is listed meanwhile."""
        self._child.when_ended(self._on_end)
        self._child.go()
        uri = uri_of(self.root)
        params = {
            "processId": None,
            "clientInfo": {"name": "computer-linker"},
            "rootUri": uri,
            "rootPath": self.root,
            "workspaceFolders": [{"uri": uri, "name": os.path.basename(self.root) or "root"}],
            "capabilities": CLIENT,
            "initializationOptions": dict(self._options),
        }
        waiting = self.wire.ask("initialize", params)
        await anyio.to_thread.run_sync(self.tracked.changes)
        found = await self.wire.result(waiting, _START_S)
        self.abilities = found.get("capabilities", {}) if isinstance(found, dict) else {}
        self.wire.notify("initialized", {})
        self.is_ready = True

    def is_unchanged(self, parts: Parts) -> bool:
        """True for a file that is exactly as it was at the last request; takes microseconds."""
        return self.tracked.has(parts) and self.tracked.is_quiet()

    def can(self, ability: str) -> bool:
        """Whether it has a provider, such as `renameProvider`; some are registered only once it runs."""
        return bool(self.abilities.get(ability))

    async def document(self, path: RootedPath) -> Document:
        """The file as it is now, as the server will have it with the next request."""
        self._check_inside(path)
        return await anyio.to_thread.run_sync(self._read, path.parts)

    async def ask(
        self,
        method: str,
        build: Callable[[Sequence[Document]], Any],
        files: Sequence[RootedPath] = (),
        *,
        whole: bool = False,
    ) -> tuple[Any, list[Document]]:
        """The answer to a request about the root as it is now, with the documents it was asked about.

        `build` gives the parameters. The request is repeated when a file of the root changed before its answer came. `whole`:
        its answer may lie in any file, so the server must have listed them all.
        """
        self.active += 1
        try:
            for attempt in range(1, _ATTEMPTS + 1):
                self.used_at = time.monotonic()
                async with self._turn:
                    documents = await self.synced(files)
                    await self._loaded(whole=whole)
                    waiting = self.wire.ask(method, build(documents))
                try:
                    answer = await self.wire.result(waiting, _ANSWER_S)
                except ProcessNotFound as error:
                    raise self.crashed() from error
                except ServerError as error:
                    # The server itself noticed that the contents changed meanwhile.
                    if error.number not in (CONTENT_MODIFIED, SERVER_CANCELLED) or attempt == _ATTEMPTS:
                        raise
                    continue
                if attempt == _ATTEMPTS or await self.is_current():
                    return answer, documents
            raise AssertionError("the last attempt returns or raises")
        finally:
            self.active -= 1
            self.used_at = time.monotonic()

    async def is_current(self) -> bool:
        """True while nothing in the root changed since the last request was sent."""
        if self.tracked.is_quiet():
            return True
        async with self._turn:
            return not await self._announced()

    async def synced(self, files: Sequence[RootedPath]) -> list[Document]:
        """Announce what changed, and open the files that a request is about; the caller holds the turn."""
        await self._announced()
        documents = []
        for path in files:
            self._check_inside(path)
            known = self.opened.get(path.parts)
            if known is not None and self.is_unchanged(path.parts):
                documents.append(known[1])
                continue
            documents.append(await anyio.to_thread.run_sync(self._read, path.parts))
            self.show(documents[-1])
            await self._settled(documents[-1].parts)
        return documents

    async def _announced(self) -> bool:
        """Notify the server of every file that changed; False when none did."""
        if self.tracked.is_quiet():
            return False
        changes = await anyio.to_thread.run_sync(self.tracked.changes)
        for parts in changes:
            self.lines.pop(parts, None)
        for parts in [parts for parts in self.opened if parts in changes]:
            try:
                self.show(await anyio.to_thread.run_sync(self._read, parts))
            except LinkError:
                self._close(parts)
        if not changes:
            return False
        events = [
            {"uri": uri_of(f"{self.root}/{'/'.join(parts)}"), "type": _TYPES[kind]} for parts, kind in changes.items()
        ]
        self.wire.notify("workspace/didChangeWatchedFiles", {"changes": events})
        if any(kind != "changed" and kind_of(parts[-1]) is self.kind for parts, kind in changes.items()):
            self._is_listed = not self.kind.listed
            await self._settled()
        return True

    async def _loaded(self, *, whole: bool) -> None:
        """Wait until the server has listed or loaded what the answer needs, where it reports that."""
        with anyio.move_on_after(_LOADED_S):
            while self.is_running and ((whole and not self._is_listed) or not self._is_loaded):
                await self._news.wait()

    async def _settled(self, parts: Parts | None = None) -> None:
        """Wait until the server has finished the work that a change causes, where it reports that.

        clangd answers about one file before it has put what it includes into its index.
        """
        uri = None if parts is None else uri_of("/".join((self.root, *parts)))
        with anyio.move_on_after(_SETTLE_S):
            while self.is_running and (self._running_tasks if uri is None else self._file_states.get(uri) == "busy"):
                await self._news.wait()

    def show(self, document: Document) -> int:
        """Make the document's text the server's; returns its version there."""
        known = self.opened.get(document.parts)
        if known is not None and known[1].text == document.text:
            self.opened.move_to_end(document.parts)
            return known[0]
        self._versions += 1
        uri = uri_of(f"{self.root}/{'/'.join(document.parts)}")
        self._uris.add(uri)
        if self._options.get("clangdFileStatus"):
            self._file_states[uri] = "busy"
        if known is None:
            item = {"uri": uri, "languageId": language_id(document.parts[-1]), "version": self._versions}
            self.wire.notify("textDocument/didOpen", {"textDocument": {**item, "text": document.text}})
        else:
            versioned = {"uri": uri, "version": self._versions}
            self.wire.notify(
                "textDocument/didChange", {"textDocument": versioned, "contentChanges": [{"text": document.text}]}
            )
        self.opened[document.parts] = (self._versions, document)
        self.opened.move_to_end(document.parts)
        while len(self.opened) > _MAX_OPEN:
            self._close(next(iter(self.opened)))
        return self._versions

    def _close(self, parts: Parts) -> None:
        self.opened.pop(parts, None)
        uri = uri_of(f"{self.root}/{'/'.join(parts)}")
        self._uris.discard(uri)
        self.published.pop(uri, None)
        self._file_states.pop(uri, None)
        self.wire.notify("textDocument/didClose", {"textDocument": {"uri": uri}})

    async def pushed(self, uri: str, version: int, timeout_s: float) -> list[dict[str, Any]]:
        """The diagnostics that the server publishes for this version of a document."""
        with anyio.move_on_after(timeout_s):
            while True:
                found = self.published.get(uri)
                if found is not None and found[0] is not None and found[0] >= version:
                    return found[1]
                if not self.is_running:
                    raise ProcessNotFound("The language server ended before it answered.")
                await self._news.wait()
        raise TimedOut(f"The language server published no diagnostics within {timeout_s:g} seconds.")

    def turn(self) -> anyio.Lock:
        """Held around messages that belong together."""
        return self._turn

    async def aclose(self) -> None:
        """End it: asked first, then killed."""
        if self.is_running and self.is_ready:
            try:
                await self.wire.result(self.wire.ask("shutdown", None), 1.0)
                self.wire.notify("exit", None)
                with anyio.move_on_after(0.5):
                    await self._child.wait()
            except LinkError:
                pass
        self.kill()

    def kill(self) -> None:
        """Kill it with everything it started, and release what it held."""
        self._child.kill()
        self.wire.close()
        close_streams(self._pumps, self._feed, None)
        self.tracked.close()
        release, self._release = self._release, _nothing
        release()
        self._tell()

    def _on_end(self, ended: Ended) -> None:
        self.ended = ended
        self.kill()

    def _read(self, parts: Parts) -> Document:
        with held(RootedPath(self.root, parts, self.rules)) as found:
            if found.is_folder:
                raise InvalidRequest(f"{'/'.join(parts)} is a folder.", path="/".join(parts))
            with open(found.fd, "rb", closefd=False) as file:
                data = file.read(MAX_FILE + 1)
        if len(data) > MAX_FILE:
            raise InvalidRequest(f"{'/'.join(parts)} is too large for a language server.", maxBytes=MAX_FILE)
        return document_of(parts, data)

    def _check_inside(self, path: RootedPath) -> None:
        if os.path.realpath(path.root) != self.root:
            raise InvalidRequest("The file lies in another root than this server's.", path=path.shown)

    def _asked(self, method: str, params: Any) -> Any:
        match method:
            case "workspace/configuration":
                items = params.get("items", []) if isinstance(params, dict) else []
                return [self.kind.settings.get(str(item.get("section", "")), None) for item in items]
            case "workspace/workspaceFolders":
                return [{"uri": uri_of(self.root), "name": "root"}]
            case "client/registerCapability":
                for each in params.get("registrations", []) if isinstance(params, dict) else []:
                    if each.get("method") == "textDocument/diagnostic":
                        self.abilities["diagnosticProvider"] = each.get("registerOptions") or True
                return None
            case "client/unregisterCapability" | "window/workDoneProgress/create":
                return None
            case "workspace/applyEdit":
                # Only an operation changes files, after the caller was judged.
                return {"applied": False}
            case _ if method.endswith("/refresh") or method == "window/showMessageRequest":
                return None
        raise NotImplementedError(method)

    def _noted(self, method: str, params: Any) -> None:
        if not isinstance(params, dict):
            return
        if method == "textDocument/publishDiagnostics":
            version = params.get("version")
            found = [each for each in params.get("diagnostics", [])[:_MAX_PROBLEMS] if isinstance(each, dict)]
            if (uri := str(params.get("uri"))) in self._uris:
                self.published[uri] = (version if isinstance(version, int) else None, found)
        elif method == "window/logMessage" and self.kind.listed:
            self._is_listed = self._is_listed or re.match(self.kind.listed, str(params.get("message"))) is not None
        elif method == "experimental/serverStatus":
            self._is_loaded = self._is_loaded or params.get("quiescent") is True
        elif method == "textDocument/clangd.fileStatus":
            if (uri := str(params.get("uri"))) in self._uris:
                self._file_states[uri] = "idle" if params.get("state") == "idle" else "busy"
        elif method == "$/progress":
            token, value = str(params.get("token")), params.get("value")
            kind = value.get("kind") if isinstance(value, dict) else None
            if kind == "begin" and len(self._running_tasks) < _MAX_TASKS:
                self._running_tasks.add(token)
            elif kind == "end":
                self._running_tasks.discard(token)
        self._tell()

    def _tell(self) -> None:
        news, self._news = self._news, anyio.Event()
        news.set()


def _nothing() -> None:
    return None


def document_of(parts: Parts, data: bytes) -> Document:
    """A file's bytes as a document."""
    try:
        text, is_utf8 = data.decode("utf-8"), True
    except UnicodeDecodeError:
        text, is_utf8 = data.decode("utf-8", "replace"), False
    return Document(parts, text, hashlib.sha256(data).hexdigest(), is_utf8)

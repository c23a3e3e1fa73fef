"""The fast path: answers the requests of a three-tool server itself, in both protocol eras, and leaves the rest to the SDK.

It handles only well-formed requests; anything else goes to the SDK, which implements every error of the protocol.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic_core import to_json

from computer_linker import __version__
from computer_linker.approvals.approvals import Approver
from computer_linker.approvals.request import NeedsInput
from computer_linker.errors import LinkError
from computer_linker.model.principal import Principal
from computer_linker.model.request_id import MAX_ID
from computer_linker.registry.context import Progress
from computer_linker.transports.mcp.answers import paged, rendered
from computer_linker.transports.mcp.dialog import input_required
from computer_linker.transports.mcp.handshake import (
    META_RENDER,
    META_SURFACE,
    MODERN_VERSION,
    Opening,
)
from computer_linker.transports.mcp.list_changes import LISTEN, wanted
from computer_linker.transports.mcp.offers import CAPABILITIES, HOUR_MS, METHODS, Offers
from computer_linker.transports.mcp.profiles import (
    NOTHING_ASKED,
    UNKNOWN,
    Profile,
    Render,
    Requested,
    profile_of,
    requested_in_meta,
)
from computer_linker.transports.mcp.tools import INSTRUCTIONS, Tools

if TYPE_CHECKING:
    from computer_linker.transports.mcp.handshake import Era

META_SERVER = "io.modelcontextprotocol/serverInfo"
SERVER_INFO = {"name": "computer-linker", "title": "Computer Linker", "version": __version__}

_ABSENT = frozenset("resources/subscribe resources/unsubscribe logging/setLevel tasks/list tasks/get".split())
"""Protocol methods that this server does not have; some clients call them regardless."""

_MAX_HANDLE = MAX_ID
"""The longest id and progress token. Each is held while a call runs, and repeated in every answer and report."""


@dataclass(slots=True)
class Negotiated:
    """What a client and this server agreed on for one connection: protocol era and version, and the client's capabilities."""

    era: "Era" = "undecided"
    version: str | None = None
    client: str | None = None
    client_capabilities: dict[str, Any] | None = None
    handshake: dict[str, Any] | None = None
    """The initialize request, stored so that it can be replayed to the SDK."""
    asked: Requested = NOTHING_ASKED
    """What the connection asked for by its environment, headers or `_meta`."""
    profile: Profile = UNKNOWN

    @property
    def render(self) -> Render:
        """The rendering: what was asked for, else what the client's profile has."""
        return self.asked.render or self.profile.render

    def meet(self, client: str | None, capabilities: dict[str, Any], meta: Any) -> None:
        """Note the client, and its own choices, which stand above those of its environment."""
        self.client, self.profile, self.client_capabilities = client, profile_of(client), capabilities
        if type(meta) is dict and not meta.keys().isdisjoint(_CHOICES):
            self.asked = requested_in_meta(meta).over(self.asked)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call as the fast path takes it."""

    name: str
    arguments: dict[str, Any]
    progress_token: Any = None
    state: Any = None
    """The state of an earlier input-required result, when this call has a person's answer."""
    responses: Any = None


@dataclass(frozen=True, slots=True)
class Begun:
    """The start of a connection that the stdio shim answered itself, while the service started."""

    answered: bytes = b""
    """The requests that were answered, one a line."""
    waiting: bytes = b""
    """What else was read of the client."""
    digest: int = 0
    """The CRC-32 of the list of tools that was given; 0 when none was."""


class FastPath(Opening):
    """Prepared answers, and the recognition of plain tool calls."""

    def __init__(self, tools: Tools) -> None:
        self.tools = tools
        self.offers = Offers(tools)

    def tools_for(self, negotiated: Negotiated) -> Tools:
        """The tools of the connection's surface."""
        return self.tools.on(negotiated.asked.surface)

    def meet(self, message: dict[str, Any], negotiated: Negotiated) -> None:
        """Note the client of a 2026-07-28 request, each of which carries it."""
        self.is_modern(message.get("params"), negotiated)

    def note(self, message: dict[str, Any], negotiated: Negotiated) -> None:
        """Note the client of an opening request that was answered elsewhere."""
        if message.get("method") == "initialize":
            self.answer(message, negotiated)
        else:
            self.meet(message, negotiated)

    def is_absent(self, message: dict[str, Any], negotiated: Negotiated) -> bool:
        """True for a well-formed request to a method this server does not have."""
        if message.get("method") not in _ABSENT:
            return False
        return negotiated.era == "handshake" or self.is_modern(message.get("params"), negotiated)

    def is_offer(self, message: dict[str, Any], negotiated: Negotiated) -> bool:
        """True for a well-formed request about resources, prompts or completion."""
        if message.get("method") not in METHODS:
            return False
        return negotiated.era == "handshake" or self.is_modern(message.get("params"), negotiated)

    def is_listening(self, message: dict[str, Any], negotiated: Negotiated) -> bool:
        """True for a well-formed request to be told of outdated lists, which the 2026-07-28 era has."""
        return (
            message.get("method") == LISTEN
            and self.is_modern(message.get("params"), negotiated)
            and wanted(message) is not None
        )

    async def offer(self, message: dict[str, Any], negotiated: Negotiated, who: Principal) -> bytes:
        """The JSON of the result of such a request. Raises OfferRefused."""
        is_modern = negotiated.era == "modern"
        result = await self.offers.answer(message["method"], message.get("params"), who, is_modern=is_modern)
        return _closed(to_json(result)[1:-1], {}, is_modern=is_modern)

    def tool_call(self, message: dict[str, Any], negotiated: Negotiated) -> ToolCall | None:
        """A plain call to one of our tools; None for anything else."""
        params = message.get("params")
        if type(params) is not dict:
            return None
        name, arguments = params.get("name"), params.get("arguments")
        if type(name) is not str or not self.tools_for(negotiated).has(name):
            return None
        if arguments is None:
            arguments = {}
        if type(arguments) is not dict:
            return None
        if negotiated.era == "handshake":
            if not params.keys() <= _HANDSHAKE_CALL:
                return None
        elif not params.keys() <= _MODERN_CALL or not self.is_modern(params, negotiated):
            return None
        meta = params.get("_meta")
        token = meta.get("progressToken") if type(meta) is dict else None
        return ToolCall(name, arguments, token, params.get("requestState"), params.get("inputResponses"))

    async def run(
        self, call: ToolCall, negotiated: Negotiated, who: Principal, report: Progress | None, ask: Approver | None
    ) -> bytes:
        """Run the call and return the JSON of its result, with the era's fields; a question to the person is a result too."""
        tools = self.tools_for(negotiated)
        try:
            if call.state is not None:
                await tools.take_response(call.state, call.responses, who)
            await tools.ready(call.name, call.arguments)
            reply = await tools.call(call.name, paged(tools, call, negotiated), who, report, ask)
        except NeedsInput as needed:
            return input_required(needed.asked)
        except LinkError as error:
            reply = await tools.refuse(call.arguments, who, error)
        members, meta = rendered(reply, tools, call, who, negotiated)
        return _closed(members, meta, is_modern=negotiated.era == "modern")

    def initialized(self, version: str) -> bytes:
        return to_json(
            {
                "protocolVersion": version,
                "capabilities": CAPABILITIES,
                "serverInfo": SERVER_INFO,
                "instructions": INSTRUCTIONS,
            }
        )

    def listed(self, known: Negotiated) -> bytes:
        """The tools of this connection, as JSON."""
        return self.tools_for(known).listing(known.profile)

    def modern_tail(self) -> bytes:
        return _LISTED_FOR_AN_HOUR + _MODERN_TAIL

    def discovered(self) -> bytes:
        members = to_json(
            {
                "supportedVersions": [MODERN_VERSION],
                "capabilities": CAPABILITIES,
                "instructions": INSTRUCTIONS,
                "ttlMs": HOUR_MS,
                "cacheScope": "private",
            }
        )[1:-1]
        return b"{" + members + _MODERN_TAIL + b"}"


def _closed(members: bytes, meta: dict[str, Any], *, is_modern: bool) -> bytes:
    """The result object: its members, the era's own, and one `_meta`."""
    if is_modern:
        meta = {META_SERVER: SERVER_INFO, **meta}
        members += b',"resultType":"complete"'
    return b"{" + members + (b',"_meta":' + to_json(meta) if meta else b"") + b"}"


_LISTED_FOR_AN_HOUR = b',"ttlMs":%d,"cacheScope":"private"' % HOUR_MS
_MODERN_TAIL = b',"resultType":"complete","_meta":' + to_json({META_SERVER: SERVER_INFO})
_CHOICES = frozenset({META_RENDER, META_SURFACE})


_HANDSHAKE_CALL = frozenset({"name", "arguments", "_meta"})
_MODERN_CALL = frozenset({"name", "arguments", "_meta", "requestState", "inputResponses"})


def fault_of(message: Any) -> str | None:
    """Why a message is refused before it is dispatched; None for one that is well formed."""
    if type(message) is not dict or message.get("jsonrpc") != "2.0":
        return "A message is one JSON-RPC 2.0 object."
    if "method" in message and ("result" in message or "error" in message):
        return "A message is a request or an answer, not both."
    params = message.get("params")
    meta = params.get("_meta") if type(params) is dict else None
    token = meta.get("progressToken") if type(meta) is dict else None
    if _is_long(message.get("id")) or _is_long(token):
        return f"An id or a progress token has at most {_MAX_HANDLE} characters."
    return None


def _is_long(handle: Any) -> bool:
    return type(handle) is str and len(handle) > _MAX_HANDLE

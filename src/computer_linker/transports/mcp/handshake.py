"""The requests that open a connection, in both protocol eras, and their answers, which need no work.

The service answers them by its live tools, the stdio shim by a prepared file while the service starts; this module is what
both share. The shim imports it while a client waits, so it imports nothing: not even `typing`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal, Protocol

    Era = Literal["undecided", "handshake", "modern"]

    class Known(Protocol):
        """What is known of a connection's client."""

        era: Era
        version: str | None
        handshake: dict[str, Any] | None
        """The initialize request, stored so that it can be replayed to the SDK."""

        def meet(self, client: str | None, capabilities: dict[str, Any], meta: Any) -> None:
            """Note the client's name and capabilities, and its own choices."""


HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN_VERSION = "2026-07-28"
META_VERSION = "io.modelcontextprotocol/protocolVersion"
META_CLIENT = "io.modelcontextprotocol/clientInfo"
META_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
META_RENDER = "computer-linker/render"
META_SURFACE = "computer-linker/toolSurface"


class Opening:
    """Recognizes these requests; a subclass has the answers, as JSON."""

    def answer(self, message: dict[str, Any], known: Known) -> bytes | None:
        """The result of a request that needs no work, as JSON; None when it is not one of these."""
        method, params = message.get("method"), message.get("params")
        if method == "initialize":
            return self._initialize(message, params, known)
        if method == "ping":
            return b"{}" if known.era != "modern" and params in (None, {}) else None
        if method == "tools/list":
            return self._list(params, known)
        if method == "server/discover" and self.is_modern(params, known):
            return self.discovered()
        return None

    def initialized(self, version: str) -> bytes:
        """The result of `initialize`."""
        raise NotImplementedError

    def discovered(self) -> bytes:
        """The result of `server/discover`."""
        raise NotImplementedError

    def listed(self, known: Any) -> bytes | None:
        """The tools of a connection; None when only the service has them."""
        raise NotImplementedError

    def modern_tail(self) -> bytes:
        """The members that end a list of tools in the 2026-07-28 era."""
        raise NotImplementedError

    def is_modern(self, params: Any, known: Known) -> bool:
        """True for a complete 2026-07-28 envelope; the first one sets the era of an undecided connection."""
        if known.era == "handshake" or type(params) is not dict:
            return False
        meta = params.get("_meta")
        if type(meta) is not dict or meta.get(META_VERSION) != MODERN_VERSION:
            return False
        capabilities, client = meta.get(META_CAPABILITIES), meta.get(META_CLIENT)
        if type(capabilities) is not dict or not (client is None or type(client) is dict):
            return False
        known.era, known.version = "modern", MODERN_VERSION
        known.meet(client_name(client), capabilities, meta)
        return True

    def _initialize(self, message: dict[str, Any], params: Any, known: Known) -> bytes | None:
        if known.era == "modern" or type(params) is not dict:
            return None
        version, client = params.get("protocolVersion"), params.get("clientInfo")
        capabilities = params.get("capabilities")
        if type(version) is not str or type(client) is not dict or type(capabilities) is not dict:
            return None
        if type(client.get("name")) is not str or type(client.get("version")) is not str:
            return None
        known.era, known.handshake = "handshake", message
        known.version = version if version in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]
        known.meet(client_name(client), capabilities, params.get("_meta"))
        return self.initialized(known.version)

    def _list(self, params: Any, known: Known) -> bytes | None:
        is_plain = params is None or (type(params) is dict and params.keys() <= {"_meta"})
        if not is_plain or not (known.era == "handshake" or self.is_modern(params, known)):
            return None
        tools = self.listed(known)
        if tools is None:
            return None
        return b'{"tools":' + tools + (self.modern_tail() if known.era == "modern" else b"") + b"}"


def client_name(client: Any) -> str | None:
    """`name/version` as declared by the client; information for the history, never a right."""
    if type(client) is not dict:
        return None
    name, version = str(client.get("name", ""))[:60], str(client.get("version", ""))[:30]
    return f"{name}/{version}" if version else name or None

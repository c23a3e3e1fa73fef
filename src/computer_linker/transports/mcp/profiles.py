"""What known clients do with an answer: one row each, found by the name in `clientInfo`."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, get_args

from computer_linker.transports.mcp.handshake import META_RENDER, META_SURFACE

Render = Literal["json", "model"]
Surface = Literal["default", "split", "expanded", "compatibility"]
CutFrom = Literal["measured", "documented", "assumed"]

OBSERVING_TOOLS = ("get_computer_info", "get_operation_history", "computer_observe")
"""The tools of the `split` surface that change nothing."""
HEADER_RENDER = b"computer-linker-render"
HEADER_SURFACE = b"computer-linker-tool-surface"


@dataclass(frozen=True, slots=True)
class Profile:
    """One client."""

    title: str
    names: tuple[str, ...] = ()
    """How its `clientInfo.name` begins, in lower case."""
    render: Render = "json"
    cut: int | None = None
    """The bytes of one answer that reach its model whole; it cuts or sets aside what is longer."""
    most_lines: int | None = None
    """The lines of one answer that reach its model, where that is bounded too."""
    error_cut: int | None = None
    """The same of a failed call, where that is less."""
    declares_size: bool = False
    """True when it takes `anthropic/maxResultSizeChars` of a tool as the cut."""
    shows_images: bool = True
    """True when an image block reaches its model, given that no structured content lies beside it."""
    cut_from: CutFrom = "assumed"
    """Where the cut is known from: `measured` with the real client, which tests/clients runs again; `documented` by its maker,
    and never seen here; or `assumed`."""
    wants_read_only_tool: bool = False
    """True when the `split` surface saves its person questions: a tool with `readOnlyHint` runs unasked (Codex, VS Code,
    ChatGPT), or one rule allows every read (Claude Code, which asks about each tool that no rule allows)."""


UNKNOWN = Profile("")
# Measured: Codex 0.166, Claude Code 2.1.325 (its documentation names 50,000 characters, 11,000 of an error), Gemini CLI 0.61
# (40,000 characters) and opencode 1.18.33 (2,000 lines or 50 KB).
# Documented: VS Code writes a result above 8,192 bytes to a file and shows its model the path (setting
# github.copilot.chat.agent.largeToolResultsToDisk.thresholdBytes, microsoft/vscode-copilot-chat configurationService.ts);
# Claude Desktop and claude.ai take about 150,000 characters (claude.com/docs/connectors/building).
# Assumed: Cursor puts long results into files and OpenAI names no bound for ChatGPT; neither publishes a number, so both get the
# smallest of the large pages.
PROFILES = (
    Profile(
        "Claude Code",
        ("claude-code",),
        "model",
        48_000,
        error_cut=10_000,
        declares_size=True,
        cut_from="measured",
        wants_read_only_tool=True,
    ),
    Profile("Codex", ("codex",), "model", 10_000, cut_from="measured", wants_read_only_tool=True),
    Profile("Gemini CLI", ("gemini-cli", "gemini cli"), "model", 38_000, cut_from="measured"),
    Profile("opencode", ("opencode",), "model", 48_000, most_lines=1_990, cut_from="measured"),
    Profile("Cursor", ("cursor",), "model", 38_000),
    Profile(
        "VS Code", ("visual studio code", "vscode"), "model", 8_000, cut_from="documented", wants_read_only_tool=True
    ),
    Profile("ChatGPT", ("openai-mcp", "chatgpt"), "model", 38_000, wants_read_only_tool=True),
    Profile(
        "Claude Desktop", ("claude-ai", "claude-desktop", "anthropic/claudeai"), "model", 140_000, cut_from="documented"
    ),
)


@lru_cache(maxsize=256)
def profile_of(client: str | None) -> Profile:
    """The profile of a client by its declared name; `UNKNOWN` for any other."""
    name = (client or "").lower()
    return next((profile for profile in PROFILES if name.startswith(profile.names) and name), UNKNOWN)


@dataclass(frozen=True, slots=True)
class Requested:
    """What a connection asks for itself; None leaves it to the client's profile and the service's default."""

    render: Render | None = None
    surface: Surface | None = None

    def over(self, other: "Requested") -> "Requested":
        """These choices, and the other's where there is none."""
        return Requested(self.render or other.render, self.surface or other.surface)


NOTHING_ASKED = Requested()


def requested(render: Any, surface: Any) -> Requested:
    """The choices by these names; a name that is not known is no choice."""
    return Requested(_known(render, Render), _known(surface, Surface))


def requested_in_meta(meta: Any) -> Requested:
    """The choices in a request's `_meta`."""
    return requested(meta.get(META_RENDER), meta.get(META_SURFACE)) if type(meta) is dict else NOTHING_ASKED


def requested_in_headers(headers: Mapping[bytes, bytes]) -> Requested:
    """The choices in an HTTP request's headers."""
    named = (headers.get(name, b"").decode("latin-1") for name in (HEADER_RENDER, HEADER_SURFACE))
    return requested(*named)


def requested_in_greeting(choices: Mapping[str, str]) -> Requested:
    """The choices that the stdio shim adds to its greeting, such as `render=model`."""
    return requested(choices.get("render"), choices.get("surface"))


def _known(value: Any, names: Any) -> Any:
    return value if type(value) is str and value in get_args(names) else None

"""Claude Code: `claude -p --output-format stream-json`. Its own sandbox is off here, so ours confines its tools."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from computer_linker.providers.agents.program import (
    MAX_OUTPUT,
    Ask,
    Event,
    Line,
    Problem,
    Progress,
    changes_of,
    clip,
    not_understood,
)

_PASSED = (
    "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_MAX_RETRIES",
    "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "https_proxy", "http_proxy", "no_proxy",
)  # fmt: skip
_KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
_WITHOUT_KEYS = "without-keys"
_PREFIX = f"""#!/bin/sh
unset {" ".join(_KEYS)}
exec /bin/bash -c "$1"
"""
"""Starts each command of the Bash tool without the keys.

CLAUDE_CODE_SUBPROCESS_ENV_SCRUB would do it too, but it forces Claude Code's own sandbox, which needs socat and does not nest
in ours. A command can still read the keys from /proc/PID/environ of the agent, which runs beside it as the same user.
"""
_QUIET = {"DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1"}
_READS = ["Read", "Glob", "Grep", "TodoWrite"]
_WRITES = ["Edit", "Write", "NotebookEdit"]
_EXIT = re.compile(r"\s*(?:Error:\s*)?Exit code (\d{1,3})\b")


class Claude:
    """The Claude Code CLI."""

    name = "claude"
    oldest = (2, 1, 0)
    install = "Install Claude Code: npm install -g @anthropic-ai/claude-code"

    def line(self, ask: Ask, environ: Mapping[str, str], state: Path) -> Line:
        warnings: list[str] = []
        tools = [*_READS, *(_WRITES if ask.mode == "workspace-write" else [])]
        if ask.is_confined and ask.network:
            tools.append("Bash")
        else:
            why = "the scope has no network" if ask.is_confined else "no kernel boundary holds"
            warnings.append(f"Claude Code ran without commands: {why}, and it could not be held to that in them.")
        argv = ["claude", "-p", "--output-format", "stream-json", "--verbose", "--permission-mode", "default"]
        # Settings and tool servers in the folder could start programs, so none of them are read.
        argv += ["--strict-mcp-config", "--setting-sources", "", "--tools", ",".join(tools)]
        argv += ["--allowedTools", ",".join(tools)]
        if ask.model is not None:
            argv += ["--model", ask.model]
        if ask.thread_id is not None:
            argv += ["--resume", ask.thread_id]
        home = str(state / "claude")
        passed = {name: environ[name] for name in _PASSED if name in environ}
        env = {**passed, **_QUIET, "CLAUDE_CONFIG_DIR": home, "CLAUDE_CODE_SHELL_PREFIX": f"{home}/{_WITHOUT_KEYS}"}
        return Line(argv, env, home, "", warnings, {_WITHOUT_KEYS: _PREFIX})

    def check(self, environ: Mapping[str, str]) -> None:
        """Nothing to check beforehand: a login may be stored in its own folder."""

    def parser(self) -> "ClaudeParser":
        return ClaudeParser()

    def problem(self, errors: str, *, is_from_model: bool) -> Problem:
        low = errors.lower()
        if (problem := not_understood(errors, self.install)) is not None:
            return problem
        if any(sign in low for sign in ("login", "api key", "401", "authenticat", "oauth")):
            remedy = (
                "Give the service ANTHROPIC_API_KEY, or CLAUDE_CODE_OAUTH_TOKEN from `claude setup-token`, then retry."
            )
            return Problem("login_required", clip(errors, 600), remedy)
        if "no conversation found" in low:
            remedy = "Claude Code no longer has this conversation; start a new one."
            return Problem("thread_not_found", clip(errors, 600), remedy)
        if is_from_model:
            return Problem("model_failed", clip(errors, 600), "The model could not be reached or refused; retry later.")
        return Problem("failed", clip(errors, 600), "The events and `stderr` tell more.")


class ClaudeParser:
    """Parses Claude Code's events as printed by 2.1.325. A tool's call and its result arrive separately and are joined."""

    def __init__(self) -> None:
        self._under_way: dict[str, Event] = {}

    def events(self, line: str) -> list[Event]:
        try:
            value = json.loads(line)
        except ValueError:
            return []
        if not isinstance(value, dict):
            return []
        match value.get("type"):
            case "system" if value.get("subtype") == "init":
                return [
                    {"type": "thread", "threadId": str(value.get("session_id", ""))[:128]},
                    {"type": "turn", "status": "running"},
                ]
            case "assistant":
                return [event for block in _blocks(value) if (event := self._content_event(block)) is not None]
            case "user":
                return [event for block in _blocks(value) if (event := self._answered(block)) is not None]
            case "result":
                return _over(value)
        return []

    def _content_event(self, block: dict[str, Any]) -> Event | None:
        match block.get("type"):
            case "text":
                return {"type": "message", "text": clip(block.get("text"))}
            case "thinking":
                return {"type": "reasoning", "text": clip(block.get("thinking"))}
            case "tool_use":
                event = _tool(str(block.get("name", "")), block.get("input"))
                event["id"] = str(block.get("id", ""))[:64]
                if len(self._under_way) < 1000:
                    self._under_way[event["id"]] = event
                return {**event, "status": "running"}
        return None

    def _answered(self, block: dict[str, Any]) -> Event | None:
        if block.get("type") != "tool_result":
            return None
        event = self._under_way.pop(str(block.get("tool_use_id", ""))[:64], None)
        if event is None:
            return None
        text, is_error = _text(block.get("content")), block.get("is_error") is True
        status: Progress = "failed" if is_error else "completed"
        if event["type"] == "command":
            found = _EXIT.match(text) if is_error else None
            code = int(found.group(1)) if found else None if is_error else 0
            return {**event, "status": status, "output": clip(text, MAX_OUTPUT), "exitCode": code}
        return {**event, "status": status, "text": clip(text, 2000) if is_error else ""}


def _tool(name: str, given: Any) -> Event:
    asked = given if isinstance(given, dict) else {}
    if name == "Bash":
        return {"type": "command", "command": clip(asked.get("command"), 4096)}
    if name in _WRITES:
        path = str(asked.get("file_path") or asked.get("notebook_path") or "")
        return {"type": "file_change", "changes": changes_of([(path, "write" if name == "Write" else "update")])}
    if name.startswith("mcp__"):
        server, _, tool = name[5:].partition("__")
        return {"type": "tool_call", "server": server[:128], "tool": tool[:128]}
    return {"type": "tool_call", "server": "claude", "tool": name[:128]}


def _over(value: dict[str, Any]) -> list[Event]:
    usage = value.get("usage")
    numbers = {str(key): each for key, each in usage.items() if type(each) is int} if isinstance(usage, dict) else {}
    events: list[Event] = [{"type": "usage", "usage": numbers}]
    if value.get("is_error") is True:
        text = clip(value.get("result") or value.get("subtype") or "")
        return [*events, {"type": "error", "text": text}, {"type": "turn", "status": "failed", "text": text}]
    return [*events, {"type": "turn", "status": "completed"}]


def _blocks(value: dict[str, Any]) -> list[dict[str, Any]]:
    message = value.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(part.get("text", "")) for part in parts if isinstance(part, dict))

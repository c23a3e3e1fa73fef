"""Codex: `codex exec --json`, its own sandbox set to what the scope allows and never wider."""

import json
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from computer_linker.errors import ProviderUnavailable
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
from computer_linker.providers.processes.confinement import OwnPlace
from computer_linker.system import os

_PASSED = (
    "OPENAI_API_KEY", "CODEX_API_KEY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "https_proxy", "http_proxy", "no_proxy",
)  # fmt: skip
_LOGIN = ("401", "unauthorized", "not logged in", "codex login", "missing environment variable", "refresh token")
_LOGINS = ("auth.json", ".credentials.json")
_LENT = ("config.toml", ".env", "AGENTS.md", "AGENTS.override.md", "skills", "prompts")
_RULES = "rules"
"""What Codex needs of the owner's folder: its logins, which it renews, and settings and instructions, which it only reads. None
of the conversations there, and no rules: what a rule allows runs outside the sandbox of Codex's commands."""
_OFF = ("hooks", "plugins", "apps", "computer_use", "browser_use", "daemon_auto_start")
_ALWAYS = (
    'approval_policy="never"',
    # Keys and tokens in the agent's environment must not reach its commands.
    "shell_environment_policy.ignore_default_excludes=false",
    "check_for_update_on_startup=false",
    # Programs and services that settings could start outside the sandbox.
    *(f"features.{name}=false" for name in _OFF),
    # Without a network it would otherwise wait for one until its time is over.
    "features.unbounded_connection_retries=false",
)


class Codex:
    """The Codex CLI."""

    name = "codex"
    oldest = (0, 120, 0)
    install = "Install Codex: npm install -g @openai/codex"

    def line(self, ask: Ask, environ: Mapping[str, str], state: Path) -> Line:
        home = _home(environ)
        settings = [*_ALWAYS, _untrusted(ask.where)]
        if ask.mode == "workspace-write":
            settings += _workspace(ask)
        if not ask.network:
            settings.append('web_search="disabled"')
        # The agent's own tool servers run outside its sandbox, so they run only where ours enforces all that is required.
        if not (ask.is_confined and ask.network):
            settings += _without_servers(home)
        argv = ["codex", "exec", "--json", "--skip-git-repo-check", "--color", "never", "--sandbox", ask.mode]
        for setting in settings:
            argv += ["-c", setting]
        if ask.model is not None:
            argv += ["--model", ask.model]
        if ask.thread_id is not None:
            argv += ["resume", ask.thread_id]
        argv.append("-")
        passed = {name: environ[name] for name in _PASSED if name in environ}
        held = "writes" if ask.network and ask.mode == "workspace-write" else "writes, network"
        holds = f"codex {ask.mode}: {held} of its commands"
        if not ask.has_own_root and Path(home, _RULES).is_dir():
            holds += ", but for those that the owner's rules of Codex allow"
        shown = _shown(home, state) if ask.has_own_root else ()
        return Line(argv, {**passed, "CODEX_HOME": home}, home, holds, shown=shown)

    def check(self, environ: Mapping[str, str]) -> None:
        home = _home(environ)
        _refuse_place(home)
        _refuse_without_login(home, _config(home), environ)

    def parser(self) -> "CodexParser":
        return CodexParser()

    def problem(self, errors: str, *, is_from_model: bool) -> Problem:
        low = errors.lower()
        if (problem := not_understood(errors, self.install)) is not None:
            return problem
        if any(sign in low for sign in _LOGIN):
            return Problem(
                "login_required", clip(errors, 600), "Run `codex login` as the user of this service, then retry."
            )
        if "no rollout found" in low or "no saved session" in low:
            return Problem(
                "thread_not_found", clip(errors, 600), "Codex no longer has this conversation; start a new one."
            )
        if is_from_model:
            return Problem("model_failed", clip(errors, 600), "The model could not be reached or refused; retry later.")
        return Problem("failed", clip(errors, 600), "The events and `stderr` tell more.")


class CodexParser:
    """Parses Codex's events as printed by 0.166; unknown ones are skipped."""

    def events(self, line: str) -> list[Event]:
        value = _object(line)
        match value.get("type"):
            case "thread.started":
                return [{"type": "thread", "threadId": str(value.get("thread_id", ""))[:128]}]
            case "turn.started":
                return [{"type": "turn", "status": "running"}]
            case "turn.completed":
                return [
                    {"type": "usage", "usage": _numbers(value.get("usage"))},
                    {"type": "turn", "status": "completed"},
                ]
            case "turn.failed":
                error = value.get("error")
                text = clip(error.get("message")) if isinstance(error, dict) else ""
                return [{"type": "turn", "status": "failed", "text": text}]
            case "error":
                return [{"type": "error", "text": clip(value.get("message"))}]
            case "item.started" | "item.updated" | "item.completed":
                item = value.get("item")
                event = _item(item, is_over=value["type"] == "item.completed") if isinstance(item, dict) else None
                return [event] if event is not None else []
        return []


def _item(item: dict[str, Any], *, is_over: bool) -> Event | None:
    about: Event = {"id": str(item.get("id", ""))[:64], "status": _status(item, is_over=is_over)}
    match item.get("type"):
        case "agent_message" if is_over:
            return {**about, "type": "message", "text": clip(item.get("text"))}
        case "reasoning" if is_over:
            return {**about, "type": "reasoning", "text": clip(item.get("text"))}
        case "command_execution":
            code = item.get("exit_code")
            return {
                **about, "type": "command", "command": clip(item.get("command"), 4096),
                "output": clip(item.get("aggregated_output"), MAX_OUTPUT) if is_over else "",
                "exitCode": code if isinstance(code, int) else None,
            }  # fmt: skip
        case "file_change":
            listed = item.get("changes")
            found = [(str(each.get("path")), str(each.get("kind"))) for each in listed or [] if isinstance(each, dict)]
            return {**about, "type": "file_change", "changes": changes_of(found)}
        case "mcp_tool_call":
            error = item.get("error")
            text = clip(error.get("message"), 2000) if isinstance(error, dict) else ""
            return {
                **about, "type": "tool_call", "server": str(item.get("server", ""))[:128],
                "tool": str(item.get("tool", ""))[:128], "text": text,
            }  # fmt: skip
        case "todo_list":
            return {**about, "type": "plan", "text": clip(_todo(item.get("items")))}
        case "web_search" if is_over:
            return {**about, "type": "tool_call", "server": "codex", "tool": "web_search"}
        case "error" if is_over:
            return {**about, "type": "warning", "text": clip(item.get("message"), 2000)}
    return None


def _status(item: dict[str, Any], *, is_over: bool) -> Progress:
    if not is_over:
        return "running"
    return "failed" if item.get("status") in ("failed", "declined") else "completed"


def _todo(items: Any) -> str:
    lines = [each for each in items if isinstance(each, dict)] if isinstance(items, list) else []
    return "\n".join(f"[{'x' if each.get('completed') else ' '}] {each.get('text', '')}" for each in lines)


def _home(environ: Mapping[str, str]) -> str:
    """The owner's Codex folder, from the service's own environment; never from a workspace."""
    return os.path.realpath(environ.get("CODEX_HOME") or f"{environ.get('HOME') or Path.home()}/.codex")


def _shown(home: str, state: Path) -> tuple[OwnPlace, ...]:
    """What Codex sees of the owner's folder, and the caller's own conversations in place of all others."""
    lent = [
        OwnPlace(os.path.realpath(f"{home}/{name}"), f"{home}/{name}", only_read=name in _LENT)
        for name in (*_LOGINS, *_LENT)
    ]
    conversations = OwnPlace(str(state / "codex"), f"{home}/sessions")
    return (conversations, *(place for place in lent if Path(place.source).exists()))


def _refuse_place(home: str) -> None:
    """Codex refuses to set up its sandbox from the temporary folder, and reports that only to its model."""
    for place in ("/tmp", os.path.realpath(tempfile.gettempdir())):  # noqa: S108  # Codex refuses these places
        if home == place or home.startswith(place + "/"):
            raise ProviderUnavailable(
                "CODEX_HOME lies in the temporary folder, where Codex cannot set up its sandbox.",
                reason="home",
                remedy="Set CODEX_HOME of the service to a folder outside the temporary folder.",
            )


def _workspace(ask: Ask) -> list[str]:
    """Settings that make only the folder writable, whatever the owner's own add; inside our sandbox /tmp is private."""
    section = "sandbox_workspace_write."
    settings = [f"{section}network_access={str(ask.network).lower()}", f"{section}writable_roots=[]"]
    if not ask.is_confined:
        settings += [f"{section}exclude_slash_tmp=true", f"{section}exclude_tmpdir_env_var=true"]
    return settings


def _untrusted(where: str) -> str:
    """The setting that ignores a folder's own settings, which start programs, even where the owner trusts it elsewhere."""
    places = [where, *map(str, Path(where).parents)]
    return "projects={" + ",".join(f'{json.dumps(place)}={{trust_level="untrusted"}}' for place in places) + "}"


def _config(home: str) -> dict[str, Any]:
    """The owner's settings of Codex; empty when there are none."""
    try:
        return tomllib.loads(Path(home, "config.toml").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ProviderUnavailable(
            "Codex's config.toml cannot be read.", reason="config", remedy=f"Correct the file: {error}"
        ) from error


def _refuse_without_login(home: str, config: dict[str, Any], environ: Mapping[str, str]) -> None:
    """Raise where there is certainly no login: Codex itself would try to reach its model first."""
    is_elsewhere = config.get("model_provider", "openai") != "openai" or "profile" in config
    is_in_keyring = config.get("cli_auth_credentials_store", "file") != "file"
    has_key = any(environ.get(name) for name in ("OPENAI_API_KEY", "CODEX_API_KEY"))
    if not (is_elsewhere or is_in_keyring or has_key or Path(home, "auth.json").exists()):
        raise ProviderUnavailable(
            "Codex is not logged in.",
            reason="login_required",
            remedy="Run `codex login` as the user of this service, then retry.",
        )


def _without_servers(home: str) -> list[str]:
    """Settings that turn off each tool server the owner has set up; Codex has no setting for all of them at once."""
    try:
        servers = _config(home).get("mcp_servers")
    except ProviderUnavailable:
        # `check` raises it once the scope's rules have been applied.
        return []
    names = list(servers) if isinstance(servers, dict) else []
    return (
        ["mcp_servers={" + ",".join(f"{json.dumps(name)}={{enabled=false}}" for name in names) + "}"] if names else []
    )


def _numbers(value: Any) -> dict[str, int]:
    return {str(key): each for key, each in value.items() if type(each) is int} if isinstance(value, dict) else {}


def _object(line: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}

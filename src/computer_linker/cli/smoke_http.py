"""`client smoke` over HTTP: health, the JSON API where it is offered, and the MCP flow of a real client."""

import json
from typing import Any

from computer_linker.cli.output import CliError
from computer_linker.cli.self_test import Steps, answered
from computer_linker.config.schema import Config
from computer_linker.http_client import fetch_now

_DEADLINE_S = 20
_MAX_BYTES = 1 << 22


def smoke_http(url: str, config: Config, *, is_public: bool) -> Steps:
    """Read only. A public address offers MCP and nothing else, so the rest is left out there."""
    from computer_linker.client.blocking import Client

    token, base, steps = _token(config), url.removesuffix("/mcp"), Steps()
    if not is_public:
        steps.check("healthz", lambda: _ask(f"{base}/healthz", None)["status"] == "ok")
        asked = {"action": "get_computer_info", "include": ["identity"]}
        steps.check("JSON API", lambda: answered(_api(base, asked, token))["machineId"] == config.machine_id)
    with Client.over_http(url, token=token) as linker:
        steps.check("get_computer_info", lambda: linker.info("identity")["machineId"] == config.machine_id)
        for scope in config.scopes:
            if scope.type == "folder" and "fs:read" in scope.capabilities:
                call = linker.scope(scope.id).call
                steps.check(
                    f"file.list in {scope.id}",
                    lambda call=call: call("file.list", ".", options={"maxResults": 1}).op == "file.list",  # type: ignore[misc]
                )
    return steps


def _token(config: Config) -> str | None:
    from computer_linker.auth.owner_token import is_digest

    if config.owner_token is not None and is_digest(config.owner_token):
        raise CliError(
            "only the token's digest is kept, so it cannot be presented", "computer-linker diagnose client needs none"
        )
    return config.owner_token


def _api(base: str, request: dict[str, Any], token: str | None) -> dict[str, Any]:
    return _ask(f"{base}/api/v1/control", request, token)


def _ask(url: str, request: dict[str, Any] | None, token: str | None = None) -> dict[str, Any]:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    method = "GET" if request is None else "POST"
    answer = fetch_now(url, seconds=_DEADLINE_S, max_bytes=_MAX_BYTES, method=method, json=request, headers=headers)
    if answer.status != 200 and not _is_envelope(answer.body):
        raise OSError(f"{url} answers with status {answer.status}")
    value: dict[str, Any] = json.loads(answer.body)
    return value


def _is_envelope(body: bytes) -> bool:
    """True for a refusal that gives its reason."""
    try:
        value = json.loads(body)
    except ValueError:
        return False
    return isinstance(value, dict) and value.get("ok") is False and isinstance(value.get("error"), dict)

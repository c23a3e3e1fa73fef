"""Progress reaches a client that asked for it, before the answer, rising, under its own token; others hear nothing."""

import json
from typing import Any

import pytest

from support.lines import stream
from support.service import META, Service, modern_headers, rpc

STEPS = 5
BATCH = {
    "name": "computer_operation",
    "arguments": {
        "scope": "app",
        "op": "batch.run",
        "input": {"operations": [{"op": "file.list", "target": "."} for _ in range(STEPS)]},
    },
}


def check(notices: list[dict[str, Any]], answer: dict[str, Any], token: Any) -> None:
    assert answer["result"]["isError"] is False
    assert notices, "no progress came"
    assert all(notice["method"] == "notifications/progress" for notice in notices)
    assert all(notice["params"]["progressToken"] == token for notice in notices)
    values = [notice["params"]["progress"] for notice in notices]
    assert values == sorted(set(values))
    assert {notice["params"]["total"] for notice in notices} == {STEPS}


@pytest.mark.parametrize("token", ["token", 7, 0, ""])
@pytest.mark.parametrize("modern", [False, True], ids=["handshake", "2026"])
def test_progress_over_the_socket(modern: bool, token: Any, open_service: Service) -> None:
    with stream(open_service.home, handshake=not modern) as lines:
        lines.modern = modern
        answer = lines.ask("tools/call", {**BATCH, "_meta": {"progressToken": token}})
        check(lines.kept(), answer, token)
        assert lines.ask("tools/call", BATCH)["result"]["isError"] is False
        assert lines.kept() == []


@pytest.mark.parametrize("modern", [False, True], ids=["handshake", "2026"])
def test_progress_over_http_comes_as_a_stream(modern: bool, open_service: Service) -> None:
    link = open_service.http()
    if modern:
        headers = modern_headers("tools/call", BATCH)
        params = {**BATCH, "_meta": {**META, "progressToken": "p"}}
    else:
        link.initialize()
        headers, params = link.session_headers(), {**BATCH, "_meta": {"progressToken": "p"}}
    status, body = link.send("POST", "/mcp", rpc(3, "tools/call", params), headers)
    assert (status, link.headers["content-type"].split(";")[0]) == (200, "text/event-stream")
    data = [line[5:] for line in body.decode().splitlines() if line.startswith("data:") and line[5:].strip()]
    *notices, answer = [json.loads(line) for line in data]
    check(notices, answer, "p")
    link.close()

"""Every way in, reduced to one call: a tool and its arguments go in, the answer's JSON comes out."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from support.commands import command
from support.lines import Lines, stdio, stream
from support.service import Service

Call = Callable[[str, dict[str, Any]], dict[str, Any]]


@contextmanager
def over_stdio(service: Service) -> Iterator[Call]:
    with stdio(service.home) as lines:
        yield _through(lines)


@contextmanager
def over_stdio_2026(service: Service) -> Iterator[Call]:
    with stdio(service.home, handshake=False) as lines:
        lines.modern = True
        yield _through(lines)


@contextmanager
def over_the_socket(service: Service) -> Iterator[Call]:
    with stream(service.home) as lines:
        yield _through(lines)


@contextmanager
def over_http(service: Service) -> Iterator[Call]:
    http = service.http()
    yield lambda tool, arguments: answer_of(http.legacy("tools/call", {"name": tool, "arguments": arguments})["result"])
    http.close()


@contextmanager
def over_http_2026(service: Service) -> Iterator[Call]:
    http = service.http()
    yield lambda tool, arguments: answer_of(http.modern("tools/call", {"name": tool, "arguments": arguments})["result"])
    http.close()


@contextmanager
def over_the_sdk_behind(service: Service) -> Iterator[Call]:
    """A progress token takes the call off the lean lane, through the SDK's own server."""
    http = service.http()

    def call(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        params = {"name": tool, "arguments": arguments, "_meta": {"progressToken": "p"}}
        return answer_of(http.legacy("tools/call", params)["result"])

    yield call
    http.close()


@contextmanager
def over_the_json_api(service: Service) -> Iterator[Call]:
    http = service.http()
    yield lambda tool, arguments: http.control(tool, **arguments)
    http.close()


@contextmanager
def over_the_command_line(service: Service) -> Iterator[Call]:
    def call(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        assert tool == "computer_operation", "the command line's `op` runs operations"
        words = [
            arguments["op"],
            *([arguments["target"]] if "target" in arguments else []),
            "--scope",
            arguments["scope"],
        ]
        for part, flag in (("input", "--input"), ("options", "--option")):
            for name, value in arguments.get(part, {}).items():
                words += [flag, f"{name}={value if isinstance(value, str) else json.dumps(value)}"]
        run = command(service.home, "op", *words, "--json")
        assert run.stdout, run.stderr
        envelope: dict[str, Any] = json.loads(run.stdout)
        assert run.returncode == (0 if envelope["ok"] else 1)
        return envelope

    yield call


def _through(lines: Lines) -> Call:
    return lambda tool, arguments: answer_of(lines.tool(tool, **arguments))


def answer_of(result: dict[str, Any]) -> dict[str, Any]:
    """The answer in a tool result; its text and its structured form must say the same."""
    answer: dict[str, Any] = json.loads(result["content"][0]["text"])
    assert result["isError"] is (answer.get("ok") is False)
    assert result.get("structuredContent", answer) == answer
    return answer


WAYS = {
    "stdio": over_stdio,
    "stdio-2026": over_stdio_2026,
    "socket": over_the_socket,
    "http": over_http,
    "http-2026": over_http_2026,
    "http-sdk": over_the_sdk_behind,
    "json-api": over_the_json_api,
    "command-line": over_the_command_line,
}

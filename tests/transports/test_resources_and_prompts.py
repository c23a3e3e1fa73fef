"""Resources, prompts and completion over every transport and era: the caller's own operations, judged and recorded."""

import base64
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from support.lines import stdio, stream
from support.service import Service, serving

Ask = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("offers")) as running:
        (running.root / "sub dir").mkdir()
        (running.root / "sub dir" / "naïve.txt").write_text("text\n")
        (running.root / "data.bin").write_bytes(b"\xff\x00\xfe")
        (running.root / ".env").write_text("SECRET=x\n")
        yield running


@pytest.fixture(params=["stdio", "socket", "socket-modern", "http", "http-modern"])
def ask(request: pytest.FixtureRequest, service: Service) -> Iterator[Ask]:
    """Sends a request and gives the whole answer, over one transport in one era."""
    if request.param.startswith("http"):
        http = service.http()
        if request.param == "http":
            http.initialize()
        send = http.modern if request.param == "http-modern" else http.legacy
        yield lambda method, **params: send(method, params)
        http.close()
        return
    opened = (
        stdio(service.home) if request.param == "stdio" else stream(service.home, handshake=request.param == "socket")
    )
    with opened as lines:
        lines.modern = request.param == "socket-modern"
        yield lambda method, **params: lines.ask(method, params)


def operation(ask: Ask, op: str, target: str | None = None, **parts: Any) -> dict[str, Any]:
    call = {"scope": "app", "op": op, **({} if target is None else {"target": target}), **parts}
    answer = ask("tools/call", name="computer_operation", arguments=call)
    data: dict[str, Any] = answer["result"]["structuredContent"]["data"]
    return data


def read(ask: Ask, uri: str) -> dict[str, Any]:
    answer = ask("resources/read", uri=uri)
    assert "result" in answer, answer
    [content] = answer["result"]["contents"]
    assert content["uri"] == uri
    found: dict[str, Any] = content
    return found


def test_files_and_folders_are_resources(ask: Ask) -> None:
    assert read(ask, "linker://app/file/sub%20dir/na%C3%AFve.txt")["text"] == "text\n"
    assert base64.b64decode(read(ask, "linker://app/file/data.bin")["blob"]) == b"\xff\x00\xfe"
    assert "sub dir" in read(ask, "linker://app/file/")["text"]


def test_outputs_artifacts_and_history_are_resources(ask: Ask) -> None:
    kept = operation(ask, "artifact.attach", input={"kind": "console_logs", "text": "evidence"})["artifact"]["id"]
    assert read(ask, f"linker://app/artifact/{kept}")["text"] == "evidence"
    assert "artifact.attach" in read(ask, "linker://app/history")["text"]
    listed = [each["uri"] for each in ask("resources/list")["result"]["resources"]]
    assert {"linker://app/file/", "linker://app/history", f"linker://app/artifact/{kept}"} <= set(listed)
    for uri in listed:
        assert ask("resources/read", uri=uri)["result"]["contents"], uri


@pytest.mark.parametrize(
    "uri",
    [
        "linker://app/file/../../etc/passwd", "linker://app/file/%2e%2e/%2e%2e/etc/passwd", "linker://app/file//etc/passwd",
        "linker://app/file/.env", "linker://app/file/missing", "linker://other/file/a", "linker://app/artifact/none",
        "linker://app/output/proc_none", "linker://app/secret", "file:///etc/passwd", "linker://app", "", "x" * 9000,
        "linker://app/history/more", "linker://app/file/a%00b",
    ],
)  # fmt: skip
def test_what_may_not_be_read_is_an_error_and_shows_nothing(service: Service, uri: str) -> None:
    with stream(service.home) as lines:
        answer = lines.ask("resources/read", {"uri": uri})
    assert answer["error"]["code"] in (-32002, -32602), answer
    assert "root:x" not in str(answer) and "SECRET" not in str(answer)


def test_a_refused_read_is_in_the_history(ask: Ask) -> None:
    ask("resources/read", uri="linker://app/file/.env")
    events = operation(ask, "history.last")["events"]
    assert any(event["op"] == "file.stat" and event["errorCode"] == "permission_denied" for event in events)


def test_lists_that_are_constant_say_how_long(ask: Ask, request: pytest.FixtureRequest) -> None:
    templates = ask("resources/templates/list")["result"]
    assert {each["name"] for each in templates["resourceTemplates"]} == {"file", "artifact", "output", "history"}
    prompts = ask("prompts/list")["result"]
    assert [each["name"] for each in prompts["prompts"]] == [
        "plan",
        "review",
        "fix",
        "test",
        "explain_refusal",
        "tidy_up",
    ]
    if "modern" in str(request.node.name):
        assert templates["ttlMs"] == prompts["ttlMs"] == 3_600_000
    for method in ("resources/list", "resources/templates/list", "prompts/list"):
        assert ask(method, cursor="nothing")["error"]["code"] == -32602


def test_every_prompt_is_filled_in(ask: Ask) -> None:
    for prompt in ask("prompts/list")["result"]["prompts"]:
        arguments = {each["name"]: "app" if each["name"] == "scope" else "{x} %s" for each in prompt["arguments"]}
        text = ask("prompts/get", name=prompt["name"], arguments=arguments)["result"]["messages"][0]["content"]["text"]
        assert "scope app" in text and ("{x} %s" in text) == (len(arguments) > 1)
    for name, arguments in (
        ("plan", {"scope": "app"}),
        ("none", {}),
        ("review", {"scope": "app", "more": "x"}),
        ("review", {}),
    ):
        assert ask("prompts/get", name=name, arguments=arguments)["error"]["code"] == -32602


def test_arguments_are_completed(ask: Ask) -> None:
    def completed(ref: dict[str, str], name: str, value: str, **known: str) -> list[str]:
        answer = ask(
            "completion/complete", ref=ref, argument={"name": name, "value": value}, context={"arguments": known}
        )
        values: list[str] = answer["result"]["completion"]["values"]
        return values

    prompt = {"type": "ref/prompt", "name": "review"}
    file = {"type": "ref/resource", "uri": "linker://{scope}/file/{+path}"}
    assert completed(prompt, "scope", "a") == ["app"] and completed(prompt, "scope", "zz") == []
    assert completed(file, "path", "su", scope="app") == ["sub dir/"]
    assert completed(file, "path", "sub dir/n", scope="app") == ["sub dir/naïve.txt"]
    assert completed(file, "path", "../", scope="app") == [] and completed(file, "path", "", scope="other") == []
    wrong = ask(
        "completion/complete", ref={"type": "ref/prompt", "name": "none"}, argument={"name": "scope", "value": ""}
    )
    assert wrong["error"]["code"] == -32602


def test_the_handshake_names_them(service: Service) -> None:
    with stream(service.home, handshake=False) as lines:
        capabilities = lines.initialize()["capabilities"]
    assert capabilities == {
        "tools": {"listChanged": True},
        "resources": {"listChanged": True},
        "prompts": {"listChanged": False},
        "completions": {},
    }

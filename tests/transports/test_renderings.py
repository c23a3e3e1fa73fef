"""The two renderings, the surfaces and the budgets, over the real transports: who gets which, and what it has."""

import json
import re
from collections.abc import Iterator
from typing import Any, get_args

import pytest

from computer_linker.registry.catalog import Catalog
from computer_linker.registry.model_text import ModelText
from computer_linker.registry.reference import whole_catalog
from computer_linker.registry.schema import signature
from computer_linker.transports.mcp.content import fit
from computer_linker.transports.mcp.info_text import shortened
from computer_linker.transports.mcp.profiles import PROFILES, CutFrom, profile_of
from support.documents import pdf, word
from support.lines import stdio
from support.service import LEGACY, MODERN, Http, Service, rpc, serving

NOTES = "first line\nsecond line\n"
READ = {"scope": "app", "op": "file.read", "target": "notes.txt"}
RENDER = "computer-linker/render"
PICTURE = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
)
"""A PNG of one red pixel."""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("renderings")) as running:
        (running.root / "notes.txt").write_text(NOTES)
        (running.root / "long.txt").write_text("".join(f"line {number} of a long file\n" for number in range(6000)))
        (running.root / "src").mkdir()
        (running.root / "src" / "main.py").write_text("def main():\n    pass\n")
        yield running


OPEN: list[Http] = []


@pytest.fixture(autouse=True)
def closed_afterwards() -> Iterator[None]:
    yield
    while OPEN:
        OPEN.pop().close()


def session(
    service: Service, client: str, headers: dict[str, str] | None = None, meta: dict[str, str] | None = None
) -> "Session":
    made = Session(service, client, headers or {}, meta or {})
    OPEN.append(made.http)
    return made


class Session:
    """A handshake-era session over HTTP that names its client, and may ask for a rendering."""

    def __init__(self, service: Service, client: str, headers: dict[str, str], meta: dict[str, str]) -> None:
        self.http, self._headers = Http(service.port, service.token), headers
        params: dict[str, Any] = {
            "protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": client, "version": "1"},
        }  # fmt: skip
        if meta:
            params["_meta"] = meta
        status, body = self.http.send("POST", "/mcp", rpc(0, "initialize", params), headers)
        assert status == 200, body
        self.http.session = self.http.headers["mcp-session-id"]

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        headers = {**self.http.session_headers(), **self._headers}
        status, body = self.http.send("POST", "/mcp", rpc(1, method, params), headers)
        assert status == 200, body
        result: dict[str, Any] = json.loads(body)["result"]
        return result

    def call(self, tool: str = "computer_operation", **arguments: Any) -> dict[str, Any]:
        return self.ask("tools/call", name=tool, arguments=arguments)

    def text(self, op: str, target: Any = None, **parts: Any) -> str:
        given = {"scope": "app", "op": op, **({"target": target} if target is not None else {}), **parts}
        return str(self.call(**given)["content"][0]["text"])


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("claude-code", "Claude Code"), ("codex-mcp-client", "Codex"), ("gemini-cli-mcp-client", "Gemini CLI"),
        ("opencode", "opencode"), ("cursor-vscode", "Cursor"), ("Visual Studio Code", "VS Code"),
        ("openai-mcp", "ChatGPT"), ("claude-ai", "Claude Desktop"), ("tests", ""), ("", ""),
    ],
)  # fmt: skip
def test_a_profile_is_found_by_the_client_s_name(name: str, title: str) -> None:
    assert profile_of(f"{name}/1.0").title == title


def test_every_profile_has_the_model_rendering_and_a_cut() -> None:
    assert all(profile.render == "model" and profile.cut for profile in PROFILES)
    # What was seen with the real client, what its maker documents, and what is assumed are told apart.
    known = {origin: [one.title for one in PROFILES if one.cut_from == origin] for origin in get_args(CutFrom)}
    assert known == {
        "measured": ["Claude Code", "Codex", "Gemini CLI", "opencode"],
        "documented": ["VS Code", "Claude Desktop"],
        "assumed": ["Cursor", "ChatGPT"],
    }
    assert {one.cut for one in PROFILES if one.cut_from == "assumed"} == {profile_of("gemini-cli").cut}


@pytest.mark.parametrize("client", [profile.names[0] for profile in PROFILES])
def test_every_operation_is_named_within_each_client_s_cut(client: str) -> None:
    """What does not fit as a signature is named, with how to ask for it; the everyday nouns keep theirs."""
    catalog = whole_catalog()
    signatures: dict[str, list[str]] = {}
    for op in catalog.operations.values():
        signatures.setdefault(op.noun, []).append(signature(op))
    whole = sum(len(line.encode()) + 1 for lines in signatures.values() for line in lines)
    cut = profile_of(client).cut or 0
    shown = shortened(signatures, whole + 2_500 - cut)
    text = "\n".join(line for lines in shown.values() for line in lines)
    assert len(text.encode()) + 2_500 <= cut
    for name in catalog.operations:
        noun, _, verb = name.partition(".")
        assert f"{name}(" in text or re.search(rf"^{noun}\.{{.*\b{verb}\b.*}}$", text, re.M), name
        assert f"{name}(" in text or f'"{noun}.*"' in shown[""][0]
    assert all(shown[noun] == signatures[noun] for noun in ("file", "command", "git", "batch"))


def test_an_unknown_client_gets_the_envelope_as_text_and_structured(service: Service) -> None:
    result = session(service, "some script").call(**READ)
    envelope = json.loads(result["content"][0]["text"])
    assert result["structuredContent"] == envelope and envelope["data"]["content"] == NOTES
    assert "_meta" not in result


def test_a_known_client_gets_the_content_as_it_is_and_nothing_structured(service: Service) -> None:
    result = session(service, "codex-mcp-client").call(**READ)
    assert result["content"] == [{"type": "text", "text": f"notes.txt, {len(NOTES)} bytes:\n{NOTES.rstrip()}"}]
    assert "structuredContent" not in result and result["isError"] is False
    facts = result["_meta"]["computer-linker/envelope"]
    assert facts["ok"] is True and len(facts["operationId"]) == 26 and "errorCode" not in facts


def test_a_connection_chooses_by_header_and_by_meta(service: Service) -> None:
    by_header = session(service, "some script", {"Computer-Linker-Render": "model"}).call(**READ)
    by_meta = session(service, "some script", meta={RENDER: "model"}).call(**READ)
    back = session(service, "claude-code", {"Computer-Linker-Render": "json"}).call(**READ)
    assert "structuredContent" not in by_header and "structuredContent" not in by_meta
    assert back["structuredContent"]["ok"] is True
    unknown = session(service, "some script", {"Computer-Linker-Render": "poem"}).call(**READ)
    assert unknown["structuredContent"]["ok"] is True


def test_a_request_of_2026_07_28_is_rendered_for_the_client_it_names(service: Service) -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": {"name": "claude-code", "version": "2"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    headers = {"mcp-protocol-version": MODERN, "mcp-method": "tools/call", "mcp-name": "computer_operation"}
    params = {"name": "computer_operation", "arguments": READ, "_meta": meta}
    # With a progress token the SDK serves the request, without one the fast path; both know the client.
    for more in ({}, {"progressToken": 7}):
        link = Http(service.port)
        OPEN.append(link)
        _, body = link.send("POST", "/mcp", rpc(1, "tools/call", {**params, "_meta": {**meta, **more}}), headers)
        text = body.decode()
        data = (
            text if text.startswith("{") else [line[5:] for line in text.splitlines() if line.startswith("data:")][-1]
        )
        result = json.loads(data)["result"]
        assert result["content"][0]["text"].startswith("notes.txt, ") and "structuredContent" not in result
        assert {"computer-linker/envelope", "io.modelcontextprotocol/serverInfo"} <= set(result["_meta"])


def test_stdio_takes_the_choice_of_the_client_s_own_environment(service: Service) -> None:
    """Point 001-023."""
    for env, structured, tools in (
        ({}, True, 3),
        ({"COMPUTER_LINKER_RENDER": "model"}, False, 3),
        ({"COMPUTER_LINKER_MCP_TOOL_SURFACE": "split"}, True, 4),
    ):
        with stdio(service.home, handshake=True, **env) as lines:
            result = lines.tool("computer_operation", **READ)
            assert ("structuredContent" in result) is structured
            assert len(lines.ask("tools/list")["result"]["tools"]) == tools


def test_the_list_of_tools_is_small_and_honest(service: Service) -> None:
    """Point 001-023."""
    for client in ("some script", "codex-mcp-client", "claude-code"):
        for surface in ("default", "split"):
            made = session(service, client, {"Computer-Linker-Tool-Surface": surface})
            tools = made.ask("tools/list")["tools"]
            assert len(json.dumps(tools, separators=(",", ":"), ensure_ascii=False).encode()) < 6_000
            hints = {tool["name"]: tool["annotations"] for tool in tools}
            assert ("computer_observe" in hints) is (surface == "split")
            assert hints["computer_operation"]["destructiveHint"] and not hints["computer_operation"]["readOnlyHint"]
            assert all(hints[name]["readOnlyHint"] for name in hints if name != "computer_operation")
            # A tool with one must always answer structured content, which large answers leave out.
            assert all("outputSchema" not in tool for tool in tools)
    sizes = {
        tool["_meta"]["anthropic/maxResultSizeChars"]
        for tool in session(service, "claude-code").ask("tools/list")["tools"]
    }
    assert sizes == {profile_of("claude-code").cut}
    # Claude Code shows its model no more than 2,048 characters of a description, and of a deferred tool only the name.
    for tool in session(service, "claude-code").ask("tools/list")["tools"]:
        assert len(tool["description"]) <= 2048
        assert tool["_meta"].get("anthropic/alwaysLoad", False) is (tool["name"] != "get_operation_history")


def test_the_observing_tool_refuses_what_changes_something(service: Service) -> None:
    made = session(service, "codex-mcp-client", {"Computer-Linker-Tool-Surface": "split"})
    read = made.call("computer_observe", **READ)
    assert read["content"][0]["text"].startswith("notes.txt")
    for op in ("file.write", "command.run", "batch.run"):
        refused = made.call("computer_observe", scope="app", op=op, target="made.txt", input={"content": "x"})
        assert refused["isError"] and refused["_meta"]["computer-linker/envelope"]["errorCode"] == "permission_denied"
    assert not (service.root / "made.txt").exists()


def test_the_shapes_of_everyday_answers(service: Service) -> None:
    made = session(service, "claude-code")
    assert made.text("file.search", ".", input={"query": "second"}) == "notes.txt:2: second line"
    assert made.text("file.search", ".", input={"query": "not in any file"}) == "no matches"
    assert made.text("file.find", ".", input={"pattern": "*.py"}) == "src/main.py"
    assert made.text("file.tree", ".").splitlines() == ["long.txt", "notes.txt", "src/", " main.py"]
    # A listing has names and types, and more where it is asked for; a program's has all fields.
    assert made.text("file.list", ".").splitlines() == ["long.txt", "notes.txt", "src/"]
    sized = made.text("file.list", ".", options={"fields": ["name", "size"]})
    assert "notes.txt  23" in sized.splitlines()
    listed = session(service, "some script").call(scope="app", op="file.list")["structuredContent"]["data"]["entries"]
    assert set(listed[0]) == {"name", "path", "type", "size", "modifiedAt"}
    output = made.text("command.run", ".", input={"command": ["sh", "-c", "echo out; echo err >&2; exit 3"]})
    assert output.startswith("exit 3, ") and "\nout\n" in output and output.endswith("err")
    written = made.text("file.write", "made.txt", input={"content": "x"})
    undo = written.splitlines()[-1]
    assert undo.startswith("undo: ") and len(undo) == len("undo: ") + 7 and "sha256" not in written
    assert made.text("file.undo", input={"operationId": undo.removeprefix("undo: ")}).splitlines()[:2] == [
        "undo of file.write:", "removed made.txt",
    ]  # fmt: skip
    assert not (service.root / "made.txt").exists()


def test_a_first_look_and_a_wrong_name_read_as_text(service: Service) -> None:
    made = session(service, "claude-code")
    look = made.text("code.context", ".")
    assert "{" not in look.partition("\nnext: ")[0] and "src/\n main.py" in look
    unknown = made.call(scope="ap", op="file.list")["content"][0]["text"]
    assert unknown.splitlines()[0].startswith("unknown_scope: ") and "scopes: app" in unknown.splitlines()
    misspelt = made.call(scope="app", op="file.red", target="notes.txt")["content"][0]["text"]
    assert "similar: file.read, " in misspelt


def test_an_error_is_one_sentence_and_what_to_do(service: Service) -> None:
    result = session(service, "claude-code").call(scope="app", op="file.read", target="missing.txt")
    text = result["content"][0]["text"]
    assert result["isError"] and text.startswith("not_found: ") and len(text) < 300
    assert result["_meta"]["computer-linker/envelope"]["errorCode"] == "not_found"


def test_a_page_fits_the_client_that_asks_and_says_where_to_go_on(service: Service) -> None:
    for client in ("codex-mcp-client", "claude-code"):
        cut = profile_of(client).cut
        assert cut is not None
        text = session(service, client).text("file.read", "long.txt")
        assert len(text.encode()) <= cut and "goes on: startLine " in text.splitlines()[0]
        next_line = int(text.splitlines()[0].rpartition("startLine ")[2].rstrip(":"))
        assert text.splitlines()[-1] == f"line {next_line - 2} of a long file"
    # Where the lines are bounded too, a page of short ones ends before its middle would be left out.
    (service.root / "short.txt").write_text("".join(f"{number}\n" for number in range(5000)))
    page = session(service, "opencode").text("file.read", "short.txt").splitlines()
    next_line = int(page[0].rpartition("startLine ")[2].rstrip(":"))
    assert page[1:] == [str(number) for number in range(next_line - 1)] and len(page) < 1990
    # A size that was asked for is kept to, and the rest can be read.
    assert "goes on" not in session(service, "some script").call(**READ)["content"][0]["text"]


def test_output_that_does_not_fit_keeps_its_start_and_its_end_and_the_rest_can_be_read(service: Service) -> None:
    made = session(service, "codex-mcp-client")
    result = made.call(scope="app", op="command.run", input={"command": ["cat", "long.txt"]})
    text, cut = result["content"][0]["text"], profile_of("codex").cut
    assert cut is not None and len(text.encode()) <= cut
    assert "line 0 of a long file" in text and text.endswith("line 5999 of a long file")
    facts = result["_meta"]["computer-linker/envelope"]
    assert facts["truncated"] is True
    start = int(text.partition('"startByte": ')[2].partition("}")[0])
    assert facts["operationId"] in text
    more = made.text("result.read", facts["operationId"], options={"startByte": start})
    before = text.partition("\n[")[0].splitlines()[-1]
    assert more.splitlines()[1] == f"line {int(before.split()[1]) + 1} of a long file"
    # Another caller has no part in it, and a kept text is no way around the scope.
    other = session(service, "some script").call(scope="app", op="result.read", target="01JA0000000000000000000000")
    assert other["structuredContent"]["error"]["code"] == "not_found"


def test_info_is_text_with_a_signature_a_line(service: Service) -> None:
    result = session(service, "codex-mcp-client").call("get_computer_info")
    text = result["content"][0]["text"]
    assert "\nscope app (folder): fs:read " in text and "\nfile.read(target, options{" in text
    assert len(text.encode()) <= (profile_of("codex").cut or 0)
    history = session(service, "codex-mcp-client").call("get_operation_history", view="last", limit=3)
    assert " ok by " in history["content"][0]["text"] and "codex-mcp-client" in history["content"][0]["text"]


def test_a_long_text_is_cut_at_whole_lines_within_bytes_and_lines() -> None:
    text = "".join(f"line {number}\n" for number in range(5000)).encode()
    for cut, most_lines in ((10_000, None), (48_000, 1990), (100_000, 1990)):
        shown = fit(text, cut, lambda at: f"from {at}", most_lines)
        head, _, tail = shown.partition(b"\n[")
        note, _, tail = tail.partition(b"]\n")
        assert len(shown) <= cut and (most_lines is None or shown.count(b"\n") < most_lines)
        assert text.startswith(head) and text.endswith(tail) and tail.startswith(b"line ")
        assert f"from {len(head)}" in note.decode() and f"{len(text) - len(head) - len(tail)} bytes" in note.decode()


@pytest.mark.parametrize(
    ("details", "shown"),
    [
        ({"missing": ["fs:write"]}, "permission_denied: It needs fs:write."),
        ({"allowed": ["ls"]}, 'permission_denied: It needs fs:write.\nallowed: ls'),
        ({"reason": "missing", "path": "notes.txt", "fields": ["a"]}, "permission_denied: It needs fs:write."),
        ({"reason": "It is gone."}, "permission_denied: It needs fs:write.\nreason: It is gone."),
        ({"nearest": {"line": 3, "endLine": 3, "text": "  x"}}, "permission_denied: It needs fs:write.\nnearest: line 3:   x"),
    ],
)  # fmt: skip
def test_an_error_s_text_repeats_nothing(details: dict[str, Any], shown: str) -> None:
    error = {"code": "permission_denied", "message": "It needs fs:write.", "retryable": False, "details": details}
    assert ModelText(Catalog({}, {})).of({"ok": False, "error": error}, "notes.txt") == shown


def test_an_answer_leads_on(service: Service) -> None:
    """What a model does next is in the answer: the view and the undo of a command, the end of a file, the other operation."""
    model = session(service, "codex")
    (service.root / "edited.txt").write_text("one\n")
    command = {"command": ["sed", "-i", "s/one/two/", "edited.txt"]}
    on_view = model.text("command.run", input=command, options={"view": True})
    assert re.search(r"exit 0, .* s, on view \w{26}: 1 changed \(view.show, view.keep, view.drop\)", on_view), on_view
    direct = model.text("command.run", input=command)
    undo = re.search(r"\nundo: (\w+)$", direct)
    assert undo is not None, direct
    assert "restored edited.txt" in model.text("file.undo", input={"operationId": undo[1]})
    assert (service.root / "edited.txt").read_text() == "one\n"
    edits = {"edits": [{"oldText": "one", "newText": "two"}]}
    dry = model.text("file.patch", "edited.txt", input=edits, options={"dryRun": True})
    assert dry == "modified edited.txt +1 -1\nnothing was changed"
    past = model.text("file.read", "edited.txt", options={"startLine": 9})
    assert "warning: edited.txt ends before line 9" in past
    assert "file.list" in model.text("file.read", "src")
    assert "command.list" in model.text("command.read", "nothing")
    assert "file.patch" in model.text("document.edit", "edited.txt", input={"fields": {"a": "b"}})
    (service.root / "letter.docx").write_bytes(word("Dear Ann,"))
    assert "document.edit" in model.text("file.patch", "letter.docx", input=edits)
    texts = {"texts": [{"oldText": "Ann", "newText": "Ben"}]}
    assert model.text("document.edit", "letter.docx", input=texts).startswith("modified letter.docx, 1 change\nundo: ")


def test_a_corrected_request_has_only_what_was_sent(service: Service) -> None:
    model = session(service, "codex")
    answer = model.call(scope="app", op="file.read", path="notes.txt", offset=2)
    corrected = re.search(r"^corrected: (.*)$", str(answer["content"][0]["text"]), re.M)
    assert corrected is not None
    assert json.loads(corrected[1]) == {**READ, "options": {"startLine": 2}}


def test_parts_of_info_that_were_asked_for_are_shown(service: Service) -> None:
    model = session(service, "codex")
    text = str(model.call("get_computer_info", include=["policy", "identity", "tools"])["content"][0]["text"])
    assert "maxRuntimeSeconds" in text and "test-machine" in text
    assert re.search(r"^git \S+ /\S*git$", text, re.M), text
    named = str(model.call("get_computer_info", operations=["document.edit", "file.patch"])["content"][0]["text"])
    assert "input.cells[].range: text. `B7`, or `A1:C2`." in named
    assert "replacements:" not in named and "input.patch" not in named, "what only older clients send"


def test_a_failed_batch_shows_what_its_steps_gave(service: Service) -> None:
    steps = [
        {"op": "file.find", "input": {"pattern": "*.py"}},
        {"op": "file.write", "target": "step.txt", "input": {"content": "x"}},
        {"op": "file.read", "target": "missing.txt"},
        {"op": "file.read", "target": "notes.txt"},
    ]
    made = session(service, "codex-mcp-client")
    result = made.call(scope="app", op="batch.run", input={"operations": steps})
    lines = result["content"][0]["text"].splitlines()
    assert result["isError"] and lines[:3] == ["[1] file.find", "src/main.py", "[2] file.write"]
    assert lines[-2:] == ["not_found: missing.txt does not exist.", "not_found: step 3 failed, 1 not run"]
    undo = next(line for line in lines if line.startswith("undo: "))
    made.text("file.undo", input={"operationId": undo.removeprefix("undo: ")})
    assert not (service.root / "step.txt").exists()


def test_the_whole_catalogue_is_sent_once(service: Service) -> None:
    result = session(service, "some script").call("get_computer_info", include=["operations"])
    answer = json.loads(result["content"][0]["text"])
    assert "structuredContent" not in result and {"operations", "capabilities"} == answer.keys()
    assert all(op["signature"].startswith(op["name"]) for op in answer["operations"])


def test_the_history_shows_which_command_ran(service: Service) -> None:
    made = session(service, "codex-mcp-client")
    made.text("command.run", ".", input={"command": ["echo", "hello"]})
    history = made.call("get_operation_history", view="last", limit=1)["content"][0]["text"]
    assert " command.run echo hello ok by codex-mcp-client" in history


def test_the_history_names_the_day_and_the_client_once(service: Service) -> None:
    made = session(service, "codex-mcp-client")
    for name in ("a", "b", "c"):
        made.text("file.stat", name)
    shown = made.call("get_operation_history", view="last", limit=3)["content"][0]["text"].splitlines()[1:]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d file.stat c not_found by codex-mcp-client/1", shown[0]), shown
    # A test may run over midnight.
    assert all(
        re.search(rf"\d\d:\d\d:\d\d file.stat {name} not_found$", line)
        for name, line in zip("ba", shown[1:], strict=True)
    )


def test_an_outline_names_its_file_once(service: Service) -> None:
    made = session(service, "claude-code")
    (service.root / "src" / "shop.py").write_text(
        "TAX = 0.2\n\n\nclass Cart:\n    def total(self) -> int:\n        return 1\n"
    )
    outline = made.text("code.outline", "src/shop.py")
    assert outline.splitlines() == ["src/shop.py", " 1: TAX = 0.2", " 4: class Cart", "  5: def total(self) -> int"]
    assert made.text("code.search_symbols", ".", input={"query": "Cart"}) == "src/shop.py:4: class Cart"
    (service.root / "src" / "shop.py").unlink()


def test_what_a_view_kept_and_what_was_deleted_can_be_taken_back(service: Service) -> None:
    made = session(service, "codex")
    (service.root / "kept.txt").write_text("one\n")
    command = {"command": ["sh", "-c", "echo two > kept.txt; echo new > added.txt"]}
    view = re.search(r"on view (\w{26})", made.text("command.run", input=command, options={"view": True}))
    assert view is not None
    kept = made.text("view.keep", view[1], input={"paths": ["kept.txt"]})
    assert re.fullmatch(r"kept kept\.txt; 1 left in the view\nundo: \w{7}", kept), kept
    assert (service.root / "kept.txt").read_text() == "two\n"
    assert "restored kept.txt" in made.text("file.undo", input={"operationId": kept[-7:]})
    assert (service.root / "kept.txt").read_text() == "one\n"
    deleted = made.text("file.delete", "kept.txt")
    assert re.fullmatch(r"deleted kept\.txt\nundo: \w{7}", deleted), deleted
    assert made.text("view.drop", view[1]) and not (service.root / "added.txt").exists()


def test_a_path_that_leads_to_nothing_names_the_one_that_is_meant(service: Service) -> None:
    model, program = session(service, "codex"), session(service, "some script")
    assert "similar: src/main.py" in model.text("file.read", "main.py").splitlines()
    # A place as a search shows it.
    wrong = model.text("file.read", "src/main.py:2")
    corrected = re.search(r"^corrected: (.*)$", wrong, re.M)
    assert corrected is not None, wrong
    assert model.call(**json.loads(corrected[1]))["content"][0]["text"].endswith("    pass")
    # A program that looks whether a file is there does not pay for a search.
    error = program.call(scope="app", op="file.read", target="main.py")["structuredContent"]["error"]
    assert "similar" not in error["details"]
    assert model.text("file.find", ".", input={"pattern": "main"}).endswith("`*main*` finds names that contain it.")


def test_a_suggestion_names_nothing_that_the_scope_closes(service: Service) -> None:
    (service.root / "src" / "credentials.json").write_text("{}")
    (service.root / "src" / ".env").write_text("KEY=1\n")
    model = session(service, "codex")
    for name in ("credentials.json", ".env"):
        assert "src/" not in model.text("file.read", name)


def test_a_picture_is_shown_to_a_model_and_named_to_a_program(service: Service) -> None:
    (service.root / "dot.png").write_bytes(PICTURE)
    blocks = session(service, "claude-code").call(scope="app", op="file.read", target="dot.png")["content"]
    assert [block["type"] for block in blocks] == ["text", "image"] and "PNG picture" in blocks[0]["text"]
    error = session(service, "some script").call(scope="app", op="file.read", target="dot.png")["structuredContent"]
    assert error["error"]["code"] == "invalid_request" and "`image`" in error["error"]["message"]


def test_one_page_of_a_document_is_one_page(service: Service) -> None:
    (service.root / "book.pdf").write_bytes(pdf("First", "Second", "Third"))
    model = session(service, "codex")
    one = model.text("file.read", "book.pdf", options={"page": 2, "pageCount": 1})
    assert "--- page 2 ---\nSecond" in one and "Third" not in one and "goes on: page 3" in one
    assert "Third" in model.text("file.read", "book.pdf", options={"page": 2})

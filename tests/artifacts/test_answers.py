"""agent-browser's answers, as version 0.41.0 prints them, become artifacts of the right kinds; nothing else opens a file."""

from typing import Any

import pytest

from computer_linker.artifacts.manifest import entries_of, is_answer
from computer_linker.errors import InvalidRequest
from support.road import Road

pytestmark = pytest.mark.anyio

PNG = bytes.fromhex("89504e470d0a1a0a0000000d49484452") + b"\0" * 40


def answer(**data: Any) -> dict[str, Any]:
    return {"success": True, "data": {"lifecycle": {"reused": True}, **data}, "error": None}


@pytest.mark.parametrize(
    ("payload", "kinds"),
    [
        (answer(path="out/s.png"), ["screenshot"]),
        (answer(path="out/s.png", annotations=[{"ref": "e1"}]), ["screenshot"]),
        (answer(path="out/v.webm", frames=9, capturedFrames=9, fps=10), ["video_recording"]),
        (answer(path="out/t.json", eventCount=607), ["browser_trace"]),
        (answer(path="out/n", requestCount=3), ["network_log"]),
        (answer(path="out/p.pdf"), ["document"]),
        (answer(messages=[{"type": "log", "text": "x", "args": []}]), ["console_logs"]),
        (answer(errors=[{"text": "boom", "line": 1, "column": 2, "url": None}]), ["console_logs"]),
        (answer(snapshot="- button", refs={"e1": {"name": "x", "role": "button"}}), ["accessibility_tree"]),
        (answer(text="Hello", origin="http://x/"), ["browser_verification"]),
        (
            [
                {"index": 0, "success": True, "error": None, "result": {"url": "http://x/", "title": "x"}},
                {"index": 1, "success": False, "error": "Element not found", "result": None},
                {"command": ["screenshot"], "success": True, "error": None, "result": {"path": "s.png"}},
            ],
            ["screenshot"],
        ),
    ],
)
def test_each_answer_has_its_kind(payload: Any, kinds: list[str]) -> None:
    assert is_answer(payload)
    assert [entry.kind for entry in entries_of(payload)] == kinds


@pytest.mark.parametrize(
    "payload",
    [
        {"success": False, "data": None, "error": "Element not found"},
        answer(),
        answer(messages=[]),
        answer(mediaUrl="/etc/passwd", screenshotPath="/etc/passwd"),
        [{"success": True, "result": {}}] * 201,
    ],
)
def test_answers_that_hold_nothing_are_refused(payload: Any) -> None:
    with pytest.raises(InvalidRequest):
        entries_of(payload)


def test_manifests_are_no_answers() -> None:
    payloads: tuple[Any, ...] = ([], {}, [{"path": "x"}], {"artifacts": []}, {"screenshotPath": "x"}, "x", None)
    for payload in payloads:
        assert not is_answer(payload)


async def test_answers_are_ingested_through_the_same_gate(road: Road) -> None:
    (road.root / "s.png").write_bytes(PNG)
    kept = await road.data("artifact.ingest", input={"manifest": answer(path="s.png"), "backend": "agent-browser"})
    assert [(one["kind"], one["title"]) for one in kept["artifacts"]] == [("screenshot", "s.png")]
    for path in ("/etc/passwd", "../x.png", "missing.png"):
        assert await road.code("artifact.ingest", input={"manifest": answer(path=path)}) in (
            "path_out_of_scope",
            "not_found",
        )
    (road.root / "a.json").write_text(
        '{"success": true, "data": {"messages": [{"type": "log", "text": "x"}]}, "error": null}'
    )
    kept = await road.data("artifact.ingest", "a.json")
    assert [one["kind"] for one in kept["artifacts"]] == ["console_logs"]
    assert len((await road.data("artifact.list"))["artifacts"]) == 2

"""The page of evidence: self-contained, without script, and nothing in it is taken for markup."""

import re
from html.parser import HTMLParser
from typing import Any

from computer_linker.artifacts.report import MAX_TEXT, Piece, Report, is_shown, report_page
from computer_linker.model.artifact import Artifact

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 30
EVIL = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>\u202e\x1b[31m"


def artifact(**more: Any) -> Artifact:
    given: dict[str, Any] = {
        "id": "art_1", "kind": "screenshot", "sha256": "ab" * 32, "size": len(PNG), "media_type": "image/png", "title": "one",
        "scope": "app", "session": "s", "operation": "01A", "label": "", "backend": "", "created_at": 1.0, "principal": "p", **more,
    }  # fmt: skip
    return Artifact(**given)


def event(**more: Any) -> dict[str, Any]:
    return {
        "operationId": "01A", "startedAt": "2026-11-16T08:00:00.000Z", "durationMs": 12.0, "scope": "app", "op": "browser.click",
        "target": "notes.txt", "decision": "allow", "ok": True, "errorCode": None, "effect": "confirmed", "client": "tests",
        "summary": {}, **more,
    }  # fmt: skip


def page(**more: Any) -> str:
    given: dict[str, Any] = {
        "title": "T",
        "computer": "c",
        "made_at": "2026-11-16T09:00:00Z",
        "version": "0.1.0",
        **more,
    }
    return report_page(Report(**given))


class Tags(HTMLParser):
    """The elements and attributes a browser would make of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs


def test_nothing_that_came_from_outside_becomes_markup() -> None:
    pieces = [
        Piece(artifact(title=EVIL, label=EVIL, backend=EVIL), PNG),
        Piece(artifact(title=EVIL, media_type="text/plain", kind="console_logs", operation="x"), EVIL.encode()),
        Piece(artifact(title=EVIL, media_type=EVIL), None),
    ]
    made = page(
        title=EVIL, computer=EVIL, asked=EVIL, history=EVIL, facts={EVIL: EVIL}, pieces=pieces,
        events=[event(op=EVIL, target=EVIL, client=EVIL, scope=EVIL), event(operationId="01B", ok=False, errorCode=EVIL)],
    )  # fmt: skip
    found = Tags(made)
    assert "script" not in found.tags
    assert found.tags.count("img") == 1
    assert not [name for name, _ in found.attributes if name.startswith("on")]
    links = [value for name, value in found.attributes if name in ("src", "href", "action", "data", "poster")]
    assert all(value is not None and value.startswith("data:image/png;base64,") for value in links)
    assert "\u202e" not in made
    assert "\x1b" not in made


def test_its_policy_lets_nothing_run_or_load() -> None:
    made = page(events=[event()])
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', made)
    assert policy is not None
    assert policy[1].startswith("default-src &#x27;none&#x27;; style-src &#x27;sha256-")
    assert "script" not in policy[1]
    assert "unsafe" not in policy[1]
    assert "http" not in policy[1]


def test_an_operation_stands_with_its_evidence_and_the_rest_after() -> None:
    pieces = [Piece(artifact(title="before browser.click"), PNG), Piece(artifact(title="stray", operation="zzz"), PNG)]
    made = page(events=[event()], pieces=pieces)
    assert made.index("browser.click") < made.index("<b>Before</b>") < made.index("Also kept") < made.index("stray")
    assert made.count("<figure>") == 2
    assert "<b>1</b>operations done" in made


def test_evidence_of_an_execution_stands_by_what_acted_in_it() -> None:
    events = [
        event(operationId="01B", op="screen.capture_window", parent="01X", effect=None),
        event(operationId="01C", op="desktop.click", parent="01X"),
    ]
    made = page(events=events, pieces=[Piece(artifact(operation="01X", title="after"), PNG)])
    assert made.index("desktop.click") < made.index("<b>After</b>")
    assert made.count("<figure>") == 1
    assert "Also kept" not in made


def test_outcomes_are_told_apart() -> None:
    made = page(
        events=[
            event(effect="suspected_noop"),
            event(ok=False, errorCode="not_found", effect=None),
            event(ok=False, errorCode="permission_denied", decision="deny", effect=None),
            event(ok=None, effect=None),
        ]
    )
    for words in (
        "nothing was seen to change",
        "failed: not_found",
        "refused: permission_denied",
        "before its outcome",
    ):
        assert words in made
    assert "<b>3</b>failed or refused" in made


def test_much_text_is_cut_and_large_things_are_named() -> None:
    long = artifact(media_type="text/plain", kind="console_logs", size=10**6)
    made = page(
        pieces=[Piece(long, b"x" * 10**6), Piece(artifact(media_type="application/pdf", kind="document"), None)]
    )
    assert "940000 bytes more" in made
    assert made.count("x" * 100) <= MAX_TEXT // 100
    assert "Not embedded: application/pdf" in made
    assert is_shown(artifact())
    assert not is_shown(artifact(size=10**9))
    assert not is_shown(artifact(media_type="image/svg+xml"))


def test_a_digest_of_what_was_kept_back_is_not_shown() -> None:
    made = page(events=[event(target="[24 characters, abc]", summary={"site": "localhost:3000"})])
    assert "24 characters" not in made
    assert "localhost:3000" in made


def test_without_anything_it_says_so() -> None:
    assert "There is no evidence." in page()

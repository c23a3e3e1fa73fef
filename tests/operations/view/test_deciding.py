"""A person decides on a view: at the terminal and on the phone page, with the diff; the proof page shows what was decided."""

import json
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.browser import phone
from support.commands import command
from support.road import folder_scope
from support.service import Service, serving

LINE = "printf 'one\\n2\\n' > a.txt; rm gone.txt; ln -s a.txt link; echo x > run; chmod 755 run"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    root = tmp_path / "root"
    root.mkdir()
    scope = folder_scope(root, allowedCommands=["*"], outcome="ask")
    with serving(tmp_path, scopes=[scope], approvalPage=True) as running:
        (running.root / "a.txt").write_text("one\ntwo\n")
        (running.root / "gone.txt").write_text("gone\n")
        yield running


def cli(service: Service, *words: str) -> str:
    done = command(service.home, *words)
    return done.stdout + done.stderr


def call(service: Service, op: str, target: str, **parts: Any) -> Any:
    http = service.http()
    try:
        return http.control("computer_operation", scope="app", op=op, target=target, **parts)
    finally:
        http.close()


def viewed(service: Service) -> str:
    ran = call(service, "command.run", ".", input={"command": ["sh", "-c", LINE]})
    assert ran["ok"] and (service.root / "a.txt").read_text() == "one\ntwo\n", ran
    view_id: str = ran["data"]["view"]["viewId"]
    return view_id


@pytest.mark.parametrize("op", ["view.keep", "view.drop"])
def test_at_the_terminal_with_the_diff_and_in_the_proof_page(service: Service, op: str, tmp_path: Path) -> None:
    view_id = viewed(service)
    parts: dict[str, Any] = {"options": {"evidence": True}}
    refused = call(service, op, view_id, **parts)
    assert refused["error"]["code"] == "confirm_required" and (service.root / "gone.txt").exists()
    text = cli(service, "approvals", "list")
    for part in ("-two", "+2", "removed gone.txt", "added link (symlink", "added run (file, mode 0755)"):
        assert part in text, text
    assert "Allowed" in cli(service, "approvals", "allow", refused["error"]["details"]["approvalId"])
    done = call(service, op, view_id, **parts)
    ran, decided = cli(service, "history", "--query", "op:command.run"), cli(service, "history", "--query", f"op:{op}")
    assert "done, on a view" in ran, ran
    assert (" kept changes of the view: a.txt and 3 more " in decided) is (op == "view.keep"), decided
    assert done["ok"], done["error"]
    assert (service.root / "gone.txt").exists() is (op == "view.drop")
    page = tmp_path / "proof.html"
    cli(service, "proof", "export", "--html", str(page), "--scope", "app")
    shown = page.read_text()
    assert "+2" in shown and "removed gone.txt" in shown and op in shown
    assert "approved by owner (terminal, once)" in shown


def test_the_proof_page_shows_what_a_client_over_mcp_did_beside_its_evidence(tmp_path: Path) -> None:
    """Found: its session was masked in the history as if it were a secret, so that the page had no operation of it."""
    with serving(tmp_path, scopes=[folder_scope(tmp_path / "root", allowedCommands=["*"])]) as service:
        http = service.http()
        http.initialize()

        def operation(op: str, target: str, **parts: Any) -> Any:
            given = {"scope": "app", "op": op, "target": target, **parts}
            answer = http.legacy("tools/call", {"name": "computer_operation", "arguments": given})
            return answer["result"]["structuredContent"]

        ran = operation("command.run", ".", input={"command": ["touch", "made"]}, options={"view": True})
        kept = operation("view.keep", ran["data"]["view"]["viewId"], options={"evidence": True})
        http.close()
        page = tmp_path / "proof.html"
        told = json.loads(cli(service, "proof", "export", "--html", str(page), "--json"))
        assert told["pieces"] == 1 and "added made" in page.read_text(), kept
        for op in ("command.run", "view.keep"):
            assert f"<span class=op>{op}</span>" in page.read_text(), told
        assert '<span class="target">touch made</span>' in page.read_text()


def test_the_owner_sees_views_with_the_command_line(service: Service) -> None:
    view_id = viewed(service)
    ran = command(service.home, "op", "command.run", ".", "--input", "command=touch made")
    assert "(its changes are on view " in ran.stderr, ran
    shown = cli(service, "op", "view.show", view_id)
    for part in ("removed gone.txt", "added link (symlink, -> a.txt)", "added run", "-two\n+2\n"):
        assert part in shown, shown
    assert len(json.loads(cli(service, "op", "view.list"))["views"]) == 2
    assert (service.root / "gone.txt").exists() and not (service.root / "made").exists()


@pytest.mark.skipif(shutil.which("chromium") is None, reason="not installed: chromium")
def test_on_the_phone_page_with_the_diff(service: Service, tmp_path: Path) -> None:
    view_id = viewed(service)
    url = json.loads(cli(service, "approvals", "phone", "--json"))["url"]
    answers: list[Any] = []
    with phone(tmp_path / "profile") as browser:
        browser.open(url)
        browser.until("document.body.innerText.includes('Nothing waits')")
        keeping = threading.Thread(target=lambda: answers.append(call(service, "view.keep", view_id)))
        keeping.start()
        browser.until("document.querySelector('h2') && document.querySelector('h2').innerText == 'view.keep'")
        shown = browser.eval("document.querySelector('pre').innerText")
        assert "+2" in shown and "removed gone.txt" in shown
        browser.until("!document.querySelector('button[value=allow]').disabled")
        browser.eval("document.querySelector('button[value=allow]').click()")
        keeping.join(60)
    assert answers[0]["ok"] and (service.root / "a.txt").read_text() == "one\n2\n"

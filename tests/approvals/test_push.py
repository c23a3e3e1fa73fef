"""Push: a real server on loopback gets one signed message for many requests, without their content, and its link opens once."""

import hmac
import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from computer_linker.approvals.push import SIGNATURE, new_target
from computer_linker.errors import InvalidRequest
from support.commands import command
from support.oauth import Browser
from support.road import folder_scope
from support.service import Service, serving, wait_for


class Receiver:
    """An HTTP server that keeps what it gets."""

    def __init__(self) -> None:
        self.got: list[tuple[str, dict[str, str], bytes]] = []
        self.status = 200
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                receiver.got.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
                self.send_response(receiver.status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def messages(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, _, body in self.got]


@contextmanager
def receiving() -> Iterator[Receiver]:
    receiver = Receiver()
    thread = threading.Thread(target=receiver.server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield receiver
    finally:
        receiver.server.shutdown()
        receiver.server.server_close()
        thread.join(10)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("push")
    with serving(folder, scopes=[folder_scope(folder / "root", confirm="all")], approvalPage=True) as running:
        yield running


def owner(service: Service, *words: str, given: str = "") -> subprocess.CompletedProcess[str]:
    return command(service.home, *words, stdin=given)


@contextmanager
def pushed_to(service: Service, url: str, *options: str, given: str = "") -> Iterator[dict[str, Any]]:
    done = owner(service, "approvals", "push", url, *options, "--json", given=given)
    assert done.returncode == 0, done.stderr
    target = json.loads(done.stdout)
    try:
        yield target
    finally:
        owner(service, "approvals", "unpush", target["id"])


def write(service: Service, name: str, answers: list[Any]) -> threading.Thread:
    def call() -> None:
        http = service.http()
        request = {"scope": "app", "op": "file.write", "target": name, "input": {"content": "a secret line"}}
        answers.append(http.control("computer_operation", **request))
        http.close()

    thread = threading.Thread(target=call)
    thread.start()
    return thread


def answer(browser: Browser, csrf: str, asked: str, choice: str) -> None:
    assert browser.send("POST", "/approve", {"id": asked, "answer": choice, "csrf": csrf})[0] == 303


def test_a_token_comes_from_a_file_and_never_as_an_argument(service: Service, tmp_path: Path) -> None:
    place = tmp_path / "token"
    place.write_text("in-a-file\n")
    with receiving() as receiver:
        with pushed_to(service, f"{receiver.url}/hook", "--token-file", str(place)):
            assert receiver.got[0][1]["authorization"] == "Bearer in-a-file"
        for options in (["--token", "t0ken"], ["--token-file", str(tmp_path / "none")], ["--token-file", "-"]):
            refused = owner(service, "approvals", "push", f"{receiver.url}/hook", *options)
            assert refused.returncode == 2, refused
        assert len(receiver.got) == 1
    assert "in-a-file" not in owner(service, "history", "--json").stdout
    assert "/hook" not in service.log, "the path of a webhook is a secret"


def test_many_requests_are_one_signed_message_without_content_and_its_link_opens_once(service: Service) -> None:
    answers: list[Any] = []
    with (
        receiving() as receiver,
        pushed_to(service, f"{receiver.url}/hook", "--token-file", "-", given="t0ken\n") as target,
    ):
        assert receiver.messages()[0]["type"] == "approval.test"
        calls = [write(service, f"pushed-{number}.txt", answers) for number in range(5)]
        message = wait_for(lambda: [one for one in receiver.messages() if one["type"] == "approval.waiting"])[0]
        path, headers, body = receiver.got[1]
        at, mac = (part.partition("=")[2] for part in headers[SIGNATURE.lower()].split(","))
        assert hmac.new(target["secret"].encode(), f"{at}.".encode() + body, sha256).hexdigest() == mac
        assert (path, headers["authorization"]) == ("/hook", "Bearer t0ken")
        assert set(message) == {"type", "machine", "waiting", "id", "expiresAt", "link"}
        assert b"secret line" not in body and b"pushed-" not in body and b"file.write" not in body

        browser, other = Browser(service.base), Browser(service.base)
        link = "/approve/" + message["link"].rpartition("/")[2]
        assert browser.send("GET", link)[0] == 303
        assert other.send("GET", link)[0] == 403, "a link is good once"
        wait_for(lambda: len(json.loads(browser.send("GET", "/approve/state")[2])) == 5)
        page = browser.send("GET", "/approve")[2]
        csrf = page.partition('name="csrf" value="')[2].partition('"')[0]
        for number, asked in enumerate(json.loads(browser.send("GET", "/approve/state")[2])):
            answer(browser, csrf, asked, "allow" if number == 0 else "deny")
        for call in calls:
            call.join(60)
        codes = sorted(one["error"]["code"] if not one["ok"] else "ok" for one in answers)
        assert codes == ["denied_by_person"] * 4 + ["ok"]
        assert len(receiver.got) == 2, "five requests, one message"
        assert owner(service, "approvals", "unpush", target["id"]).returncode == 0
        assert browser.send("GET", "/approve")[0] == 403, "and what came by its link is closed with it"
    assert len(list(service.root.glob("pushed-*"))) == 1
    assert "/hook" not in service.log, "the path of a webhook is its secret"


def test_with_content_an_ntfy_topic_gets_what_it_is(tmp_path: Path) -> None:
    with (
        serving(tmp_path, scopes=[folder_scope(tmp_path / "root", confirm="all")]) as service,
        receiving() as receiver,
        pushed_to(service, f"{receiver.url}/my-topic", "--ntfy", "--content"),
    ):
        answers: list[Any] = []
        call = write(service, "named.txt", answers)
        message = wait_for(lambda: receiver.messages()[1:])[0]
        assert (receiver.got[1][0], message["topic"]) == ("/", "my-topic")
        assert "wants file.write in app" in message["message"] and "named.txt" in message["message"]
        assert "click" not in message and "computer-linker approvals" in message["message"], "the page is off here"
        listed = json.loads(owner(service, "approvals", "list", "--json").stdout)
        assert [(one["kind"], one["host"], one["content"]) for one in listed["push"]] == [("ntfy", "127.0.0.1", True)]
        assert owner(service, "approvals", "deny", listed["waiting"][0]["id"]).returncode == 0
        call.join(60)
        assert answers[0]["error"]["code"] == "denied_by_person" and not (service.root / "named.txt").exists()


def test_an_address_that_does_not_take_the_first_message_is_not_added(service: Service) -> None:
    with receiving() as receiver:
        receiver.status = 403
        refused = owner(service, "approvals", "push", f"{receiver.url}/hook")
        assert refused.returncode == 1 and "403" in refused.stderr
    assert json.loads(owner(service, "approvals", "list", "--json").stdout)["push"] == []


@pytest.mark.parametrize(
    "url",
    [
        "http://ntfy.example/topic",
        "ftp://127.0.0.1/x",
        "https://me:pw@ntfy.example/x",
        "https://",
        "file:///etc/passwd",
        "x",
    ],
)
def test_an_address_that_would_leak_or_is_none_is_refused(url: str) -> None:
    with pytest.raises(InvalidRequest):
        new_target(url, is_ntfy=False, token=None, with_content=False)

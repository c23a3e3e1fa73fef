"""A second look at who asks and what a yes was said to: spellings, hidden parts, and what outlives an ended session."""

import json
import os
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import rfc8785

from computer_linker import home as places
from computer_linker.approvals.approvals import Approvals
from computer_linker.approvals.request import DIALOG_CHARACTERS, Answer, ApprovalRequest, Preview
from computer_linker.approvals.terminal import shown
from computer_linker.cli.approval_text import format_request
from computer_linker.config.schema import Config
from computer_linker.model.principal import Principal
from computer_linker.model.scope import Scope
from computer_linker.policy.digest import canonical_request
from computer_linker.service.app import open_app
from computer_linker.transports.http.approval_html import list_page
from computer_linker.transports.http.guards import came_through_a_proxy
from computer_linker.transports.mcp.dialog import question
from support.road import LOCAL, Road, folder_scope
from support.service import Service, serving
from support.waiting import wait_for

pytestmark = pytest.mark.anyio

GOOD = "open('good', 'w').write('1')\n"
EVIL = "open('evil', 'w').write('1')\n"
MAKE_GOOD, MAKE_EVIL = "all:\n\techo 1 > {}good\n", "all:\n\techo 1 > {}evil\n"


@pytest.fixture
async def road(tmp_path: Path) -> AsyncIterator[Road]:
    scopes = [folder_scope(tmp_path / "root", confirm="all"), folder_scope(tmp_path / "root", "free")]
    async with Road.open(tmp_path, scopes) as opened:
        yield opened


def people(road: Road) -> Approvals:
    return road.app.services.use(Approvals)


async def after_the_yes(road: Road, change: Callable[[], object], op: str, target: Any, **parts: Any) -> dict[str, Any]:
    """A person says yes to a call; then something changes; then the call comes again."""
    refused = await road.call(op, target, **parts)
    assert refused["error"]["code"] == "confirm_required", refused
    assert people(road).answer(refused["error"]["details"]["approvalId"], "yes")
    change()
    return await road.call(op, target, **parts)


JOINED: dict[str, tuple[list[str], str, str, str]] = {
    "a module joined to its option": (["python3", "-mbuild"], "build.py", GOOD, EVIL),
    "a module behind joined options": (["python3", "-um", "pkg.build"], "pkg/build.py", GOOD, EVIL),
    "a module joined to several options": (["python3", "-Bumpkg.build"], "pkg/build.py", GOOD, EVIL),
    "a makefile joined to -f": (["make", "-fother.mk"], "other.mk", MAKE_GOOD, MAKE_EVIL),
    "a folder joined to -C": (["make", "-Csub"], "sub/Makefile", MAKE_GOOD, MAKE_EVIL),
    "a script of a folder that a shell enters": (["sh", "-c", "cd sub && python3 x.py"], "sub/x.py", GOOD, EVIL),
}


@pytest.mark.parametrize("case", JOINED)
async def test_a_file_that_an_option_hides_is_held_too(road: Road, case: str) -> None:
    command, name, good, evil = JOINED[case]
    path = road.root / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(good.format(""))

    late = await after_the_yes(
        road, lambda: path.write_text(evil.format("")), "command.run", ".", input={"command": command}
    )

    assert late["error"]["code"] == "conflict", late
    assert name in late["error"]["details"]["changed"]
    assert not list(road.root.rglob("good")) and not list(road.root.rglob("evil"))


async def test_what_npm_runs_before_and_after_a_script_is_shown(road: Road) -> None:
    scripts = {"test": "echo ok", "pretest": "node steal.js", "posttest": "node hide.js"}
    (road.root / "package.json").write_text(json.dumps({"scripts": scripts}))

    await road.call("package.run", ".", input={"script": "test"})

    [asked] = people(road).waiting()
    assert asked.about is not None
    told = "\n".join(asked.about.lines)
    assert all(text in told for text in scripts.values()), told


async def test_a_program_in_a_folder_that_became_executable_is_not_copied(road: Road) -> None:
    (road.root / "d").mkdir()
    (road.root / "d" / "run.sh").write_text("echo 1\n")

    late = await after_the_yes(
        road, lambda: (road.root / "d" / "run.sh").chmod(0o755), "file.copy", "d", input={"destination": "e"}
    )

    assert late["error"]["code"] == "conflict", late
    assert not (road.root / "e").exists()


async def test_a_link_in_a_folder_that_leads_elsewhere_is_not_moved(road: Road) -> None:
    (road.root / "d").mkdir()
    link = road.root / "d" / "link"
    link.symlink_to("../aaaa")

    def turn() -> None:
        link.unlink()
        link.symlink_to("../bbbb")

    late = await after_the_yes(road, turn, "file.move", "d", input={"destination": "e"})

    assert late["error"]["code"] == "conflict", late
    assert link.is_symlink() and not (road.root / "e").exists()


def asked_with(
    about: Preview | None, client: str | None = "Claude Code/2.0", preview: str = "{}\n2 bytes, sha256 0"
) -> ApprovalRequest:
    now = time.monotonic()
    return ApprovalRequest(
        "ask_1", "file.undo", "app", "0", preview, "oauth:client_evil", "s", "c", client, now, now + 60, about=about
    )


def everywhere(asked: ApprovalRequest) -> dict[str, str]:
    """The question as each place shows it."""
    item = shown(asked)
    return {
        "dialog": question(asked)["message"],
        "page": list_page([(asked, [])], "csrf", "here"),
        "terminal": "\n".join(line for line, _ in format_request(item, 200)),
    }


@pytest.mark.parametrize("place", ["dialog", "page", "terminal"])
async def test_a_name_that_a_client_gives_itself_does_not_hide_who_it_is(place: str) -> None:
    assert "oauth:client_evil" in everywhere(asked_with(None))[place]


@pytest.mark.parametrize("place", ["dialog", "page", "terminal"])
async def test_every_place_shows_what_would_change(place: str) -> None:
    assert "removed: precious.txt" in everywhere(asked_with(Preview(("removed: precious.txt",))))[place]


async def test_a_dialog_that_has_no_room_for_what_would_change_only_refuses() -> None:
    asked = asked_with(Preview(tuple(f"removed: {number:05d}.txt" for number in range(DIALOG_CHARACTERS // 10))))

    choices = question(asked)["requestedSchema"]["properties"]["decision"]["enum"]

    assert choices == ["Do not allow"]
    assert not asked.fits_a_dialog


@pytest.mark.parametrize(
    "name",
    [
        *("x_forwarded_for", "X-Forwarded", "x-host", "WL-Proxy-Client-IP", "HTTP_X_FORWARDED_FOR", "proxy-connection"),
        *("x-nginx-proxy", "max-forwards", "z-forwarded-for", "x-localtunnel", "x-real-port", "x-rewrite-url"),
    ],
)
def test_other_spellings_of_a_proxy_are_known(name: str) -> None:
    assert came_through_a_proxy({name.lower().encode(): b"x"}, "1.1")


def test_what_clients_send_by_themselves_is_no_proxy() -> None:
    usual = (
        "host user-agent accept accept-language content-type content-length connection authorization mcp-session-id "
        "mcp-protocol-version mcp-method mcp-name sec-fetch-mode sec-fetch-site x-request-id traceparent origin cookie referer"
    )
    assert not came_through_a_proxy({name.encode(): b"x" for name in usual.split()}, "1.1")


async def test_what_was_allowed_from_now_on_ends_with_the_client(road: Road) -> None:
    client = Principal("oauth:client_1", "oauth", "http-1", "http-1", grants=frozenset({"app"}))
    call = {"scope": "app", "op": "file.write", "target": "a.txt", "input": {"content": "1"}}
    refused = (await road.app.dispatcher.call_wire(call, client)).envelope
    people(road).answer(refused["error"]["details"]["approvalId"], "shape")
    assert (await road.app.dispatcher.call_wire(call, client)).ok
    waiting = {**call, "target": "b.txt"}

    await road.app.services.end_of(client.id)

    for again in (call, waiting):
        late = (await road.app.dispatcher.call_wire(again, client)).envelope
        assert late["error"]["code"] == "confirm_required", late


async def test_what_the_owner_took_away_while_a_person_was_asked_is_not_done(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "home").mkdir(mode=0o700)
    scope = Scope.from_wire(folder_scope(tmp_path / "root", confirm="all"))
    less = scope.model_copy(update={"capabilities": ["fs:read"]})
    now = [Config(machine_id="test-machine", machine_name="test", scopes=[scope])]

    async def ask(asked: ApprovalRequest) -> Answer | None:
        now[0] = now[0].model_copy(update={"scopes": [Scope.from_wire(less.to_wire())]})
        return "yes"

    call = {"scope": "app", "op": "file.write", "target": "a.txt", "input": {"content": "1"}}
    async with open_app(tmp_path / "home", lambda: now[0]) as app, app.services.use(Approvals).attached("owner", ask):
        late = (await app.dispatcher.call_wire(call, LOCAL)).envelope

    assert late["error"]["code"] == "permission_denied", late
    assert not (tmp_path / "root" / "a.txt").exists()


ODD: dict[str, Any] = {
    "controls": "".join(map(chr, range(0x21))) + '\x7f"\\/\u2028\ufeff\U0001f600',
    "numbers": [0, -0.0, 1.0, 1e21, 1e-7, 0.1, 5e-324, 2**53 - 1, True, None],
    "keys": {"\U0001f600": 1, "\ufb33": 2, "a": 3, "": 4, "\n": 5},
    "nested": [[], {}, [{"b": [], "a": {}}]],
}


@pytest.mark.parametrize("name", ODD)
def test_the_canonical_request_is_that_of_the_standard(name: str) -> None:
    value = {"scope": "app", "op": "x", "target": ODD[name], "input": {"v": ODD[name]}, "options": {}}

    assert canonical_request("app", "x", ODD[name], {"v": ODD[name]}, None) == rfc8785.dumps(value)


def test_a_request_of_many_escapes_does_not_hold_up_the_service() -> None:
    content = "a\n" * 1_000_000

    def seconds(work: Callable[[], object]) -> float:
        began = time.process_time()
        work()
        return time.process_time() - began

    plain = max(seconds(lambda: json.dumps(content, ensure_ascii=False)), 0.005)
    assert seconds(lambda: canonical_request("app", "file.write", "a", {"content": content}, None)) < 20 * plain


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with serving(tmp_path, scopes=[folder_scope(tmp_path / "root")]) as running:
        yield running


def test_a_greeting_that_is_never_ended_leaves_no_descriptor_behind(service: Service) -> None:
    sent = service.root / "sent"
    sent.write_text("x")
    held = Path(f"/proc/{service.process.pid}/fd")

    def kept() -> int:
        return sum(os.path.realpath(place) == str(sent.resolve()) for place in held.iterdir())

    with sent.open("rb") as file, socket.socket(socket.AF_UNIX) as link:
        link.connect(str(service.home / places.SOCKET_NAME))
        link.recv(200)
        for _ in range(20):
            socket.send_fds(link, [b"x"], [file.fileno(), file.fileno()])
        link.settimeout(30)
        assert link.recv(1) == b"", "it is not waited for without an end"
    wait_for(lambda: not kept())

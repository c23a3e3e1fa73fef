"""Applications and notices on a real X11 desktop."""

from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
from dbus_fast import Message
from dbus_fast.aio import MessageBus

from computer_linker.computer.base import Computer
from support.desktop import Desktop, missing
from support.road import Road, computer_scope, folder_scope
from support.service import serving
from support.waiting import until, until_awaited

pytestmark = [pytest.mark.anyio, pytest.mark.desktop]


@pytest.fixture
def entries(desktop: Desktop) -> Path:
    """Our own menu: a terminal that shows what it got, one that fails, one that is hidden."""
    folder = Path(desktop.env["HOME"]) / ".local/share/applications"
    folder.mkdir(parents=True, exist_ok=True)
    shown = 'xterm -class Shown -e sh -c "printenv > $HOME/env.txt; echo \\"$@\\" > $HOME/args.txt; cat" sh %F'
    (folder / "our.Shown.desktop").write_text(
        f"[Desktop Entry]\nType=Application\nName=Shown Terminal\nExec={shown}\nStartupWMClass=Shown\n"
    )
    (folder / "our.Failing.desktop").write_text("[Desktop Entry]\nType=Application\nName=Failing\nExec=false\n")
    (folder / "our.Hidden.desktop").write_text(
        "[Desktop Entry]\nType=Application\nName=Hidden\nExec=xterm\nNoDisplay=true\n"
    )
    return folder


@pytest.fixture
async def road(tmp_path: Path, computer: Computer, entries: Path) -> AsyncIterator[Road]:
    if lacking := missing("xterm"):
        pytest.skip(f"not installed: {lacking}")
    scopes = [computer_scope("desk"), computer_scope("private", excludedApplications=["shown*"])]
    async with Road.open(tmp_path, scopes, computer) as opened:
        yield opened


async def test_an_application_is_opened_focused_and_closed(road: Road, desktop: Desktop) -> None:
    home = Path(desktop.env["HOME"])
    opened = await road.call("app.open", "our.Shown", scope="desk", input={"arguments": ["a file.txt", "b.txt"]})
    assert (opened["ok"], opened["effect"]) == (True, "confirmed")
    (window,) = opened["data"]["app"]["windows"]
    await until(lambda: (home / "args.txt").exists() and (home / "args.txt").read_text())
    assert (home / "args.txt").read_text() == "a file.txt b.txt\n"
    running = await road.data("app.list", scope="desk", options={"runningOnly": True})
    assert [(one["id"], one["windows"]) for one in running["apps"]] == [("our.Shown", [window])]
    focused = await road.call("app.focus", "Shown Terminal", scope="desk")
    assert focused["effect"] == "confirmed"
    closed = await road.call("app.close", "our.Shown", scope="desk")
    assert (closed["data"]["closed"], closed["effect"]) == (True, "confirmed")
    assert await road.code("app.focus", "our.Shown", scope="desk") == "not_found"


async def test_an_application_gets_nothing_of_the_services_environment(
    tmp_path: Path, desktop: Desktop, entries: Path
) -> None:
    from computer_linker.computer.local.probe import this_computer

    home = Path(desktop.env["HOME"])
    (home / "env.txt").unlink(missing_ok=True)
    computer = this_computer({**desktop.env, "COMPUTER_LINKER_TOKEN": "secret-7f3a"})
    app = await computer.apps.open("our.Shown")
    await until(lambda: (home / "env.txt").exists() and "DISPLAY" in (home / "env.txt").read_text())
    assert "secret-7f3a" not in (home / "env.txt").read_text()
    assert await computer.apps.close(app.id)
    await computer.aclose()


async def test_only_installed_applications_open_and_options_are_refused(road: Road, desktop: Desktop) -> None:
    marker = Path(desktop.env["HOME"]) / "marker"
    for name in ("sh", "/usr/bin/xterm", "our.Hidden", f"sh -c 'touch {marker}'"):
        assert await road.code("app.open", name, scope="desk") == "not_found"
    refused = await road.code("app.open", "our.Shown", scope="desk", input={"arguments": ["--e", f"touch {marker}"]})
    assert refused == "invalid_request"
    assert not marker.exists()
    assert await road.code("app.open", "Failing", scope="desk") == "execution_failed"


async def test_no_application_is_handed_a_program_to_run(road: Road, desktop: Desktop, entries: Path) -> None:
    """Found: a terminal whose entry takes no file ran the client's script, outside every boundary."""
    home = Path(desktop.env["HOME"])
    script, marker = home / "run.sh", home / "ran"
    script.write_text(f"#!/bin/sh\ntouch {marker}\n")
    script.chmod(0o755)
    head = "[Desktop Entry]\nType=Application\n"
    (entries / "our.Plain.desktop").write_text(f"{head}Name=Plain\nExec=xterm\n")
    (entries / "our.Terminal.desktop").write_text(
        f"{head}Name=Terminal\nExec=xterm -e %f\nCategories=System;TerminalEmulator;\n"
    )
    for name in ("our.Plain", "our.Terminal"):
        for argument in (str(script), "notes.txt"):
            given = {"arguments": [argument]}
            assert await road.code("app.open", name, scope="desk", input=given) == "invalid_request"
    for argument in (str(script), "run.sh", f"file://{script}", "other.desktop"):
        given = {"arguments": [argument]}
        assert await road.code("app.open", "our.Shown", scope="desk", input=given) == "permission_denied"
    running = await road.data("app.list", scope="desk", options={"runningOnly": True})
    assert running["apps"] == [] and not marker.exists()


async def test_an_excluded_application_is_not_listed_or_opened(road: Road) -> None:
    listed = await road.data("app.list", scope="private")
    assert "our.Shown" not in [one["id"] for one in listed["apps"]]
    assert await road.code("app.open", "our.Shown", scope="private") == "permission_denied"
    running = await road.data("app.list", scope="desk", options={"runningOnly": True})
    assert running["apps"] == []


async def test_notices_are_seen(computer: Computer, desktop: Desktop) -> None:
    assert await computer.notifications.recent() == []
    bus = await MessageBus(bus_address=desktop.env["DBUS_SESSION_BUS_ADDRESS"]).connect()
    name, path = "org.freedesktop.Notifications", "/org/freedesktop/Notifications"
    body = ["mail", 0, "", "New \x1bmail", "from Zoë", [], {}, 1000]
    await bus.send(
        Message(destination=name, path=path, interface=name, member="Notify", signature="susssasa{sv}i", body=body)
    )
    found = await until_awaited(lambda: computer.notifications.recent())
    bus.disconnect()
    assert [(one.app, one.summary, one.body) for one in found] == [("mail", "New \\u001bmail", "from Zoë")]


async def test_windows_belong_to_the_entry_that_starts_the_program_plainly(road: Road, entries: Path) -> None:
    # Sorted before the plain entry, and running the same program for one task.
    for name, options in (("A task", "-name task"), ("Plain terminal", "")):
        entry = f"[Desktop Entry]\nType=Application\nName={name}\nExec=xterm {options}\n"
        (entries / f"our.{name.split()[0]}.desktop").write_text(entry)
    opened = await road.call("app.open", "our.Plain", scope="desk")
    (window,) = opened["data"]["app"]["windows"]
    running = await road.data("app.list", scope="desk", options={"runningOnly": True})
    assert [one["id"] for one in running["apps"] if window in one["windows"]] != ["our.A"]
    owner = next(one["id"] for one in running["apps"] if window in one["windows"])
    assert (await road.data("app.close", owner, scope="desk"))["closed"] is True


async def test_a_single_instance_application_is_found_without_waiting(
    road: Road, entries: Path, desktop: Desktop
) -> None:
    single = 'sh -c "test -e $HOME/single && exit 0; touch $HOME/single; exec xterm -class Single"'
    (entries / "our.Single.desktop").write_text(
        f"[Desktop Entry]\nType=Application\nName=Single\nExec={single}\nStartupWMClass=Single\n"
    )
    first = await road.call("app.open", "our.Single", scope="desk")
    again = await road.call("app.open", "our.Single", scope="desk")
    assert (again["ok"], again["data"]["app"]["windows"]) == (True, first["data"]["app"]["windows"]), again
    assert again["durationMs"] < 12_000, "it waited for a window that the running instance never opens"
    assert (await road.data("app.close", "our.Single", scope="desk"))["closed"] is True


async def test_an_application_gets_the_sessions_environment(desktop: Desktop, entries: Path) -> None:
    from computer_linker.computer.local.probe import this_computer

    home = Path(desktop.env["HOME"])
    (home / "env.txt").unlink(missing_ok=True)
    session = {"XDG_CURRENT_DESKTOP": "our", "GTK_MODULES": "gail", "SAL_USE_VCLPLUGIN": "gtk3"}
    computer = this_computer({**desktop.env, **session})
    app = await computer.apps.open("our.Shown")
    await until(lambda: (home / "env.txt").exists() and "DISPLAY" in (home / "env.txt").read_text())
    held = (home / "env.txt").read_text().splitlines()
    assert {f"{name}={value}" for name, value in session.items()} <= set(held)
    assert await computer.apps.close(app.id)
    await computer.aclose()


async def test_an_application_is_not_answered_over_http_with_the_owner_token(
    tmp_path: Path, desktop: Desktop, entries: Path
) -> None:
    """Found: what a client opened was the owner over HTTP, once it had read the token (F22)."""
    if lacking := missing("xterm"):
        pytest.skip(f"not installed: {lacking}")
    home, token = Path(desktop.env["HOME"]), "token-of-the-owner-0123456789abcdef"
    answers = home / "answers.txt"
    answers.unlink(missing_ok=True)
    scopes = [computer_scope("desk"), folder_scope(tmp_path / "root")]
    with serving(tmp_path, token=token, env=dict(desktop.env), scopes=scopes) as service:
        ask = (
            "import json,socket,urllib.request as r,urllib.error as e\n"
            "out=[]\n"
            "call={'action':'computer_operation','scope':'app','op':'file.write','target':'planted','input':{'content':'x'}}\n"
            "body=json.dumps(call)\n"
            f"head='POST /api/v1/control HTTP/1.1\\r\\nHost: 127.0.0.1:{service.port}\\r\\nAuthorization: Bearer {token}\\r\\n'\n"
            "head+=f'Content-Type: application/json\\r\\nContent-Length: {len(body)}\\r\\n\\r\\n'\n"
            "for _ in range(20):\n"
            f"    s=socket.create_connection(('127.0.0.1',{service.port})); s.sendall((head+body).encode()); s.close()\n"
            "for path in ('/api/v1/history','/healthz'):\n"
            f"    q=r.Request('http://127.0.0.1:{service.port}'+path,headers={{'Authorization':'Bearer {token}'}})\n"
            "    try: out.append(r.urlopen(q,timeout=60).status)\n"
            "    except e.HTTPError as x: out.append(x.code)\n"
            "open('answers.new','w').write(str(out))\n"
            "import os; os.rename('answers.new','answers.txt')\n"
        )
        (home / "ask.py").write_text(ask)
        (entries / "our.Asking.desktop").write_text(
            "[Desktop Entry]\nType=Application\nName=Asking\nStartupWMClass=Asking\n"
            'Exec=xterm -class Asking -e sh -c "python3 ask.py; cat"\n'
        )

        def operate(op: str, target: str | None = None) -> bytes:
            call = {"action": "computer_operation", "scope": "desk", "op": op, **({"target": target} if target else {})}
            with closing(service.http()) as link:
                status, body = link.send("POST", "/api/v1/control", call)
            assert status == 200, body
            return body

        assert b'"ok":true' in operate("app.open", "our.Asking")
        await until(answers.exists)
        assert answers.read_text() == "[403, 200]" and not (tmp_path / "root" / "planted").exists()
        # The tests' own program, with the same token, is answered.
        assert b'"ok":true' in operate("app.list")
        operate("app.close", "our.Asking")

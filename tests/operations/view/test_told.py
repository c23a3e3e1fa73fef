"""What a model and a person are told: of a view in text, and before a command runs what nothing takes back."""

from pathlib import Path

import pytest

from computer_linker.approvals.approvals import Approvals
from computer_linker.registry.model_text import ModelText
from support.road import Road, folder_scope

pytestmark = pytest.mark.anyio
CHANGES = (
    "printf 'one\\n2\\n' > a.txt; rm -r gone; head -c 3000 /dev/zero > new.bin; chmod 755 run; ln -s /etc/passwd out; "
    "mv old.txt new.txt; mkdir .vscode; truncate -s 9 known.bin"
)


async def test_a_model_reads_every_kind_of_change_with_what_is_named_apart(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "gone/deep").mkdir(parents=True)
    (root / "gone/deep/file").write_text("x\n")
    for name, text in (("a.txt", "one\ntwo\n"), ("run", "x\n"), ("old.txt", "a text\n"), ("known.bin", "\0\0\0")):
        (root / name).write_text(text)
    async with Road.open(tmp_path, [folder_scope(root, allowedCommands=["*"])]) as road:
        ran = {"input": {"command": ["sh", "-c", CHANGES]}, "options": {"view": True}}
        view_id = (await road.data("command.run", ".", **ran))["view"]["viewId"]
        text = ModelText(road.app.dispatcher.catalog).of(await road.call("view.show", view_id))
        for line in (
            "added .vscode (directory)",
            "changed a.txt (+1 -1)",
            "removed gone (directory, a folder of 2 names goes)",
            "changed known.bin (3 -> 9 bytes)",
            "added new.bin (3000 bytes)",
            "renamed new.txt (from old.txt, 7 bytes)",
            "added out (symlink, -> /etc/passwd)",
            "changed run (mode 0644 -> 0755, 2 bytes)",
            "-two",
            "+2",
            "out  /etc/passwd",
        ):
            assert line in text.splitlines(), text
        refused = text.splitlines()[text.splitlines().index("refused:") :]
        assert any(line.startswith(".vscode  ") for line in refused), text
        listed = ModelText(road.app.dispatcher.catalog).of(await road.call("view.list"))
        assert listed.startswith(f"{view_id}: 8 changed names, ") and "command.run sh -c" in listed


@pytest.mark.parametrize("outcome", ["direct", "view", "ask"])
async def test_what_cannot_be_taken_back_is_said_before_a_command_runs(tmp_path: Path, outcome: str) -> None:
    scope = folder_scope(tmp_path / "root", allowedCommands=["*"], outcome=outcome, confirm="all")
    async with Road.open(tmp_path, [scope]) as road:
        command = {"command": ["touch", "made"]}
        asked = {"op": "command.run", "target": ".", "input": command}
        told = (await road.data("computer.explain", input=asked))["reason"]
        assert ("file.undo" in told, "view" in told) == (outcome == "direct", outcome != "direct")
        assert "over the network" in told
        assert await road.code("command.run", ".", input=command) == "confirm_required"
        (request,) = road.app.services.use(Approvals).waiting()
        assert "over the network, in other folders, or by services cannot be taken back" in request.text
        assert not (road.root / "made").exists()

"""What a Makefile or a justfile would run is shown to the person who is asked about its target."""

from pathlib import Path

import pytest

from computer_linker.approvals.approvals import Approvals
from computer_linker.approvals.request import Answer, ApprovalRequest
from computer_linker.providers.packages.recipes import recipe_lines
from support.road import Road, folder_scope

pytestmark = pytest.mark.anyio

MAKEFILE = """\
PROGRAM = ./deploy.sh
STAMP := $(shell touch read-at-once)
-include more.mk
define LONG
sh first.sh
endef
.PHONY: all
release: build ; @echo inline
\t$(PROGRAM) --force
build:
\t$(LONG) \\
\t  continued
unrelated:
\techo not-for-this-target
"""
JUSTFILE = """\
set dotenv-load
tool := "./deploy.sh"
now := `date`
release target='x': build && after
  {{tool}} --force
build:
  sh first.sh

after:
  echo afterwards
unrelated:
  echo not-for-this-target
"""


@pytest.mark.parametrize("op", ["package.run", "package.start"])
async def test_the_recipe_is_shown_with_what_it_needs(tmp_path: Path, op: str) -> None:
    seen: list[str] = []

    async def person(asked: ApprovalRequest) -> Answer | None:
        seen.append(asked.text)
        return "no"

    async with Road.open(
        tmp_path, [folder_scope(tmp_path / "root", confirm="all", allowedCommands=["make *"])]
    ) as road:
        (road.root / "Makefile").write_text(MAKEFILE)
        (road.root / "deploy.sh").write_text("touch ran")
        async with road.app.services.use(Approvals).attached("tests", person):
            assert await road.code(op, ".", input={"script": "release"}) == "denied_by_person"
        for line in (
            "release: build ; @echo inline", "    $(PROGRAM) --force", "PROGRAM = ./deploy.sh", "sh first.sh", "continued",
            "STAMP := $(shell touch read-at-once)", "-include more.mk", "names deploy.sh",
        ):  # fmt: skip
            assert line in seen[0], seen[0]
        assert "not-for-this-target" not in seen[0]
        assert sorted(path.name for path in road.root.iterdir()) == ["Makefile", "deploy.sh"], "nothing ran"


async def test_a_script_that_the_recipe_names_is_held_to_what_was_shown(tmp_path: Path) -> None:
    async def person(asked: ApprovalRequest) -> Answer | None:
        (tmp_path / "root" / "deploy.sh").write_text("touch another")
        return "yes"

    async with Road.open(
        tmp_path, [folder_scope(tmp_path / "root", confirm="all", allowedCommands=["make *"])]
    ) as road:
        (road.root / "Makefile").write_text("release:\n\tsh deploy.sh\n")
        (road.root / "deploy.sh").write_text("touch ran")
        async with road.app.services.use(Approvals).attached("tests", person):
            assert await road.code("package.run", ".", input={"script": "release"}) == "conflict"
        assert sorted(path.name for path in road.root.iterdir()) == ["Makefile", "deploy.sh"], "nothing ran"


def test_a_recipe_of_a_justfile_is_read_the_same_way() -> None:
    shown = recipe_lines("justfile", JUSTFILE, "release")
    for line in (
        "set dotenv-load", 'tool := "./deploy.sh"', "now := `date`", "release target='x': build && after",
        "  {{tool}} --force", "  sh first.sh", "  echo afterwards",
    ):  # fmt: skip
        assert line in shown, shown
    assert "  echo not-for-this-target" not in shown and recipe_lines("package.json", "{}", "x") == ()

"""Which file a name means, and whether the scope could have put it there."""

import os
from pathlib import Path

import pytest

from computer_linker.errors import NotFound
from computer_linker.providers.processes.programs import Programs


def make(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_a_folder_of_the_scope_is_never_searched(tmp_path: Path) -> None:
    make(tmp_path / "root" / "bin" / "tool")
    make(tmp_path / "tools" / "tool")
    path = f"{tmp_path}/root/bin:relative::{tmp_path}/tools"
    programs = Programs([str(tmp_path / "root")], {"PATH": path})
    assert programs.locate("tool") == f"{tmp_path}/tools/tool"
    assert str(tmp_path / "root" / "bin") not in programs.search_path and "relative" not in programs.search_path


def test_a_link_on_the_search_path_into_the_scope_is_told(tmp_path: Path) -> None:
    make(tmp_path / "root" / "tool")
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "tool").symlink_to(tmp_path / "root" / "tool")
    programs = Programs([str(tmp_path / "root")], {"PATH": f"{tmp_path}/tools"})
    assert programs.resolve("tool", str(tmp_path)).is_writable_by_scope


def test_a_root_reached_by_another_name_is_the_same_root(tmp_path: Path) -> None:
    make(tmp_path / "root" / "tool")
    (tmp_path / "alias").symlink_to(tmp_path / "root")
    programs = Programs([str(tmp_path / "alias")], {"PATH": f"{tmp_path}/root"})
    assert programs.locate("tool") is None
    assert programs.resolve("./tool", f"{tmp_path}/root").is_writable_by_scope


def test_what_the_user_cannot_change_is_not_the_scopes(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("the superuser can change every program")
    assert not Programs(["/"], {"PATH": "/usr/bin"}).resolve("sh", "/").is_writable_by_scope


@pytest.mark.parametrize("name", ["missing", "./missing", "/missing", "tool ", "data", "folder"])
def test_what_is_no_program_is_not_found(tmp_path: Path, name: str) -> None:
    make(tmp_path / "tool")
    (tmp_path / "data").write_text("x")
    (tmp_path / "folder").mkdir()
    with pytest.raises(NotFound):
        Programs(["/nowhere"], {"PATH": str(tmp_path)}).resolve(name, str(tmp_path))

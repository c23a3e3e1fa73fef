"""Presets: the hosts of package managers, from the machine's own settings."""

import os
from pathlib import Path

import pytest

from computer_linker.model.network import PRESETS, Entry
from computer_linker.providers.network.presets import preset_entries, trusted_by


@pytest.mark.parametrize(
    ("name", "file", "text", "expected"),
    [
        ("npm", ".npmrc", "registry=https://npm.example.org/x/\n@a:registry=http://u:p@b.example:8080\n//b/:_authToken=t\n",
         (Entry("npm.example.org", (443,)), Entry("b.example", (8080,)))),
        ("pip", ".config/pip/pip.conf", "[global]\nindex-url = https://pip.example.org/simple\nextra-index-url =\n  http://c.example/s\n",
         (Entry("pip.example.org", (443,)), Entry("c.example", (80,)))),
        ("cargo", ".cargo/config.toml", "[source.m]\nregistry = 'sparse+https://cargo.example.org/i/'\n", (Entry("cargo.example.org", (443,)),)),
        ("go", ".config/go/env", "GOPROXY=https://go.example.org|direct\n", (Entry("go.example.org", (443,)),)),
    ],
)  # fmt: skip
def test_hosts_are_those_of_the_settings(
    tmp_path: Path, name: str, file: str, text: str, expected: tuple[Entry, ...]
) -> None:
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    found = preset_entries(name, tmp_path, {}, lambda path: path.is_relative_to(tmp_path))
    assert found == expected
    assert preset_entries(name, tmp_path, {}, lambda _path: False) == ()


@pytest.mark.parametrize("name", PRESETS)
def test_settings_that_cannot_be_read_count_as_none(tmp_path: Path, name: str) -> None:
    for file in (".npmrc", ".config/pip/pip.conf", ".cargo/config.toml", ".config/go/env"):
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"\xff\0[[[=http://\nregistry=https://[x\n")
    assert isinstance(preset_entries(name, tmp_path, {}, lambda path: path.is_relative_to(tmp_path)), tuple)


def test_a_file_that_a_scope_writes_is_not_asked(tmp_path: Path) -> None:
    assert not trusted_by(lambda _path: "app")(tmp_path) and trusted_by(lambda _path: None)(tmp_path)


def test_a_link_that_changes_while_it_is_judged_names_no_other_file(tmp_path: Path) -> None:
    (tmp_path / "own").write_text("registry=https://own.example\n")
    (tmp_path / "scope").write_text("registry=https://evil.example\n")
    (tmp_path / ".npmrc").symlink_to("own")

    def judged(path: Path) -> bool:
        if path.name != "own":
            return False
        (tmp_path / "next").symlink_to("scope")
        (tmp_path / "next").rename(tmp_path / ".npmrc")
        return True

    assert preset_entries("npm", tmp_path, {}, judged) == (Entry("own.example", (443,)),)
    assert preset_entries("npm", tmp_path, {}, judged) == ()


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".npmrc")
    assert preset_entries("npm", tmp_path, {}, lambda path: path.is_relative_to(tmp_path)) == ()

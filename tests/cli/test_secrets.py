"""Secrets on the command line: stored from standard input, listed without values, allowed to a scope, removed."""

import json
from pathlib import Path

import pytest

from computer_linker.vault.secret import placeholder_for
from support.canary import CANARY, is_in
from support.commands import command
from support.service import serving


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "app").mkdir()
    assert command(tmp_path / "home", "setup", tmp_path / "app").returncode == 0
    return tmp_path / "home"


def scope_of(home: Path) -> dict[str, object]:
    policy: dict[str, object] = json.loads((home / "config.json").read_text())["scopes"][0]["policy"]
    return policy


def test_a_secret_is_stored_listed_allowed_and_removed(home: Path) -> None:
    added = command(home, "secret", "add", "api-token", "--for", "api.example.com", "--json", stdin=f"{CANARY}\n")
    assert added.returncode == 0, added.stderr
    assert json.loads(added.stdout)["variable"] == "API_TOKEN"
    allowed = command(home, "scope", "allow-secret", "app", "api-token", "--json")
    assert json.loads(allowed.stdout)["network"] == ["api.example.com"], allowed.stderr
    assert scope_of(home)["secrets"] == ["api-token"]
    listed = command(home, "secret", "list", "--json")
    (one,) = json.loads(listed.stdout)["secrets"]
    assert (one["place"], one["scopes"]) == ("https://api.example.com", ["app"])
    history = command(home, "history", "list", "--json")
    denied = command(home, "scope", "deny-secret", "app", "api-token")
    removed = command(home, "secret", "remove", "api-token")
    assert denied.returncode == removed.returncode == 0 and scope_of(home)["secrets"] == []
    assert json.loads(command(home, "secret", "list", "--json").stdout)["secrets"] == []
    for done in (added, allowed, listed, history, denied, removed):
        assert not is_in(done.stdout) and not is_in(done.stderr)
    assert not any(is_in(path.read_bytes()) for path in home.rglob("*") if path.is_file())


def test_a_running_service_has_it_at_once(home: Path) -> None:
    with serving(home.parent):
        assert command(home, "secret", "add", "one", "--for", "a.example.com", stdin=CANARY).returncode == 0
        assert "one" in command(home, "secret", "list").stdout
        assert command(home, "secret", "add", "one", "--for", "a.example.com", stdin=CANARY).returncode == 1
        again = command(home, "secret", "add", "one", "--for", "b.example.com:8443", "--replace", stdin=CANARY)
        assert again.returncode == 0 and "b.example.com:8443" in command(home, "secret", "list").stdout


@pytest.mark.parametrize(
    ("words", "value"),
    [
        (("short", "--for", "a.example.com"), "1234567"),
        (("flat", "--for", "a.example.com"), "aaaaaaaaaaaa"),
        (("lines", "--for", "a.example.com"), "first line\nsecond line"),
        (("umlaut", "--for", "a.example.com"), "Schlüssel-zum-Haus"),
        (("nowhere",), CANARY),
        (("plain", "--for", "http://a.example.com"), CANARY),
        (("star", "--for", "*.example.com"), CANARY),
        (("path", "--for", "https://a.example.com/x"), CANARY),
        (("bad name", "--for", "a.example.com"), CANARY),
        (("path", "--for", "a.example.com"), CANARY),
        (("header", "--for", "a.example.com", "--header", "X: y"), CANARY),
        (("ca", "--for", "a.example.com", "--ca", "/etc/hostname"), CANARY),
    ],
)
def test_what_cannot_be_kept_is_refused_and_nothing_is_stored(home: Path, words: tuple[str, ...], value: str) -> None:
    done = command(home, "secret", "add", *words, stdin=value)
    assert done.returncode != 0 and not is_in(done.stdout + done.stderr), done
    assert json.loads(command(home, "secret", "list", "--json").stdout)["secrets"] == []


def test_a_scope_with_the_whole_network_or_an_unknown_secret_is_left_as_it_is(home: Path) -> None:
    assert command(home, "scope", "allow-secret", "app", "unknown").returncode == 1
    command(home, "secret", "add", "one", "--for", "a.example.com", stdin=CANARY)
    command(home, "scope", "edit", "app", "--policy", "network=true")
    before = (home / "config.json").read_bytes()
    assert command(home, "scope", "allow-secret", "app", "one").returncode == 1
    assert (home / "config.json").read_bytes() == before


def test_a_removed_secret_leaves_no_grant_for_a_later_one_of_its_name(home: Path) -> None:
    assert command(home, "secret", "add", "one", "--for", "a.example.com", stdin=CANARY).returncode == 0
    assert command(home, "scope", "allow-secret", "app", "one").returncode == 0
    removed = command(home, "secret", "remove", "one", "--json")
    assert json.loads(removed.stdout)["scopes"] == ["app"] and scope_of(home)["secrets"] == []
    assert command(home, "secret", "add", "one", "--for", "b.example.com", stdin=CANARY).returncode == 0
    (one,) = json.loads(command(home, "secret", "list", "--json").stdout)["secrets"]
    assert one["scopes"] == []


def test_a_name_that_a_scope_has_already_is_not_given_to_it_unasked(home: Path) -> None:
    config = json.loads((home / "config.json").read_text())
    config["scopes"][0].setdefault("policy", {})["secrets"] = ["one"]
    (home / "config.json").write_text(json.dumps(config))
    refused = command(home, "secret", "add", "one", "--for", "a.example.com", stdin=CANARY)
    assert refused.returncode == 1 and "deny-secret app one" in refused.stderr, refused.stderr
    assert json.loads(command(home, "secret", "list", "--json").stdout)["secrets"] == []


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ("correct-horse-battery-staple-77", ""), ("mypassword_12345678", ""), ("tok-ABCDEF-1234567890", ""),
        ("Sommer_2026_Berlin_geheim99", ""), ("ghp_0123456789abcdefABCDEF", "ghp_"), ("sk-ant-0123456789abcdef", "sk-ant-"),
    ],
)  # fmt: skip
def test_a_placeholder_has_only_a_well_known_prefix_of_the_secret(value: str, kept: str) -> None:
    made = placeholder_for(value)
    assert made.startswith(kept) and len(made) == len(value)
    pairs = [(one, other) for one, other in zip(made[len(kept) :], value[len(kept) :], strict=True) if other.isalnum()]
    assert sum(one == other for one, other in pairs) * 2 < len(pairs), made

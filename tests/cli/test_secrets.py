"""Secrets on the command line: stored from standard input, listed without values, allowed to a scope, removed."""

import json
import subprocess
from pathlib import Path

import pytest

from computer_linker.vault.secret import placeholder_for
from computer_linker.vault.ssh_key import canonical_key, secret_parts
from support.canary import CANARY, is_in, is_key_in
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


def key_in(folder: Path, *options: str) -> Path:
    path = folder / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path), *options], check=True, timeout=60)
    return path


def known(folder: Path, name: str) -> Path:
    """A host's key, in a file as `ssh-keyscan` writes it."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "host")], check=True, timeout=60)
    path = folder / "known"
    path.write_text(f"# a comment\n{name} {(folder / 'host.pub').read_text()}")
    return path


@pytest.mark.parametrize("is_hashed", [False, True])
def test_an_ssh_key_is_stored_for_one_host_with_the_keys_that_the_owner_recorded(home: Path, is_hashed: bool) -> None:
    key, hosts = key_in(home.parent), known(home.parent, "[git.example.org]:2222")
    if is_hashed:
        subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(hosts)], check=True, capture_output=True, timeout=60)
    added = command(home, "secret", "add", "deploy", "--for", "ssh://git@git.example.org:2222", "--host-key", hosts, "--value-file",
                    key, "--json")  # fmt: skip
    assert added.returncode == 0, added.stderr
    made = json.loads(added.stdout)
    shown = subprocess.run(
        ["ssh-keygen", "-lf", str(home.parent / "host.pub")], capture_output=True, text=True, check=True
    )
    assert made["place"] == "ssh://git@git.example.org:2222" and made["variable"] == "SSH_AUTH_SOCK"
    assert [each.split()[1] for each in made["hostKeys"]] == [shown.stdout.split()[1]]
    allowed = command(home, "scope", "allow-secret", "app", "deploy", "--json")
    assert json.loads(allowed.stdout)["network"] == ["git.example.org:2222"], allowed.stderr
    (seed,) = secret_parts(canonical_key(key.read_text()))
    assert not any(is_key_in(path.read_bytes(), seed) for path in home.rglob("*") if path.is_file())


def test_the_usual_known_hosts_are_read(home: Path) -> None:
    key = key_in(home.parent)
    (home.parent / ".ssh").mkdir()
    known(home.parent, "git.example.org,alias.example.org").rename(home.parent / ".ssh" / "known_hosts")
    env = {"HOME": str(home.parent)}
    words = ("--value-file", str(key), "--json")
    added = command(home, "secret", "add", "one", "--for", "ssh://alias.example.org", *words, env=env)
    assert added.returncode == 0 and len(json.loads(added.stdout)["hostKeys"]) == 1, added.stderr
    unknown = command(home, "secret", "add", "two", "--for", "ssh://git.example.org:2222", *words, env=env)
    assert unknown.returncode != 0 and "ssh-keyscan" in unknown.stderr


@pytest.mark.parametrize(
    ("origin", "options"),
    [
        ("ssh://git@git.example.org", ("--header", "X-Key")),
        ("ssh://git@git.example.org", ("--env", "KEY")),
        ("ssh://git@git.example.org", ("--app", "gedit")),
        ("ssh://-oProxyCommand=x@git.example.org", ()),
        ("ssh://other.example.org", ()),
        ("git@git.example.org", ()),
        ("git.example.org", ()),
        ("ftp://git.example.org", ()),
    ],
)
def test_a_key_that_is_not_for_one_recorded_ssh_host_is_refused(
    home: Path, origin: str, options: tuple[str, ...]
) -> None:
    key, hosts = key_in(home.parent), known(home.parent, "git.example.org")
    done = command(home, "secret", "add", "deploy", "--for", origin, "--host-key", hosts, "--value-file", key, *options)
    assert done.returncode != 0, done
    assert json.loads(command(home, "secret", "list", "--json").stdout)["secrets"] == []


def test_a_key_with_a_passphrase_and_what_is_no_key_are_refused(home: Path) -> None:
    hosts = known(home.parent, "git.example.org")
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "open sesame", "-f", str(home.parent / "key")],
        check=True,
        timeout=60,
    )
    for value in (home.parent / "key", home.parent / "key.pub", hosts):
        done = command(
            home,
            "secret",
            "add",
            "deploy",
            "--for",
            "ssh://git.example.org",
            "--host-key",
            hosts,
            "--value-file",
            value,
        )
        assert done.returncode != 0, done
    assert json.loads(command(home, "secret", "list", "--json").stdout)["secrets"] == []


def test_a_scope_is_let_ask_for_hosts_and_no_more(home: Path) -> None:
    allowed = command(home, "scope", "allow-host", "app", "--ask")
    assert allowed.returncode == 0 and "you are asked for others" in allowed.stdout, allowed
    assert scope_of(home)["network"] == ["ask"]
    assert command(home, "scope", "allow-host", "app").returncode != 0
    assert command(home, "scope", "allow-host", "app", "a.example.org", "--ask").returncode != 0
    assert command(home, "scope", "deny-host", "app", "--ask").returncode == 0
    assert scope_of(home)["network"] is False

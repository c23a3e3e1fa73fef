"""Protected and sensitive names, in any case and any disguise."""

import pytest

from computer_linker.errors import InvalidRequest, PathOutOfScope
from computer_linker.model.paths import split_target
from computer_linker.policy.names import is_protected, is_sensitive


@pytest.mark.parametrize(
    "path",
    [
        ".git/hooks/pre-commit", ".GIT/config", "sub/.Git", "a/b/.git", ".git.", ".git ", "git~1/config", ".g\u200cit/config",
        ".codex/config.toml", ".claude/settings.json", ".CLAUDE/x", ".cursor/mcp.json", ".vscode/tasks.json", ".mcp.json",
        ".bashrc", ".zshrc", ".Profile", ".ssh/authorized_keys", ".npmrc", ".config/autostart/x.desktop", ".envrc",
        "home/me/.config/systemd/user/x.service", "Library/LaunchAgents/x.plist", "\uff0egit/config", ".husky/pre-commit",
    ],
)  # fmt: skip
def test_what_other_programs_trust_is_protected(path: str) -> None:
    assert is_protected(tuple(path.split("/")))


@pytest.mark.parametrize(
    "path", ["src/git.py", ".github/workflows/ci.yml", ".gitignore", "README.md", ".config/app/x.toml", "git"]
)
def test_ordinary_files_are_not_protected(path: str) -> None:
    assert not is_protected(tuple(path.split("/")))


@pytest.mark.parametrize(
    "path",
    [".env", ".ENV", ".env.local", ".env.production", "a/.env. .", "id_rsa", "keys/server.pem", "x.key", ".ssh/config",
     ".aws/credentials", "credentials.json", ".netrc", "secrets.yaml", ".git-credentials", "vault.kdbx", ".docker/config.json"],
)  # fmt: skip
def test_what_usually_holds_a_secret_is_sensitive(path: str) -> None:
    assert is_sensitive(tuple(path.split("/")))


@pytest.mark.parametrize(
    "path", [".env.example", ".env.sample", "environment.py", "keyboard.py", "docs/keys.md", "id_rsa.pub.md"]
)
def test_ordinary_files_are_not_sensitive(path: str) -> None:
    assert not is_sensitive(tuple(path.split("/")))


@pytest.mark.parametrize(
    "target", ["..", "../x", "a/../../x", "/etc/passwd", "\\\\?\\C:\\x", "C:\\x", "c:/x", "./../x", "a/b/../../.."]
)
def test_a_target_cannot_leave_the_root(target: str) -> None:
    with pytest.raises(PathOutOfScope):
        split_target(target)


@pytest.mark.parametrize("target", ["a\0b", "x" * 5000, "n" * 300, "%2e%2e/x"])
def test_what_is_no_path_is_refused(target: str) -> None:
    with pytest.raises(InvalidRequest):
        split_target(target)


def test_dots_inside_are_resolved_without_the_disk() -> None:
    assert split_target("./a//b/../c/.") == ("a", "c")
    assert split_target("") == () == split_target(".")
    assert split_target("~/x") == ("~", "x")
    assert split_target("100%/x") == ("100%", "x")

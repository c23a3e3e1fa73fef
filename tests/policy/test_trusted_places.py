"""Files that other programs execute or trust, over the whole of a home folder."""

from pathlib import Path

import pytest

from computer_linker.policy.names import is_protected
from support.road import Road, folder_scope

TRUSTED = """
.config/autostart/x.desktop .config/systemd/user/x.service .config/environment.d/x.conf .config/fish/config.fish
.config/pip/pip.conf .pip/pip.conf .cargo/config.toml .cargo/bin/x .m2/settings.xml .gradle/init.d/x.gradle
.config/nvim/init.lua .vim/plugin/x.vim .config/powershell/profile.ps1 .config/sway/config .config/tmux/tmux.conf
.ipython/profile_default/startup/x.py .local/lib/python3.11/site-packages/x.pth .local/bin/ls .local/share/applications/x.desktop
.hgrc .bazelrc .condarc .bash_completion .oh-my-zsh/custom/x.zsh .config/emacs/init.el .mozilla/firefox/x/user.js .Xresources
.forward .rhosts .psqlrc .kiro/settings/mcp.json .roo/mcp.json .qwen/settings.json .config/goose/config.yaml .clinerules
Library/LaunchAgents/x.plist Documents/PowerShell/profile.ps1 .CONFIG/Autostart/x.desktop .config./autostart/x.desktop
work/home/.config/autostart/x.desktop .ssh/authorized_keys .zshenv .gitconfig .codex/config.toml .claude/settings.json .npmrc
""".split()
ORDINARY = """
src/config/autostart.py config/app.toml .config/app/x.toml .github/workflows/ci.yml .gitlab-ci.yml .editorconfig .gitignore
.gitattributes .pre-commit-config.yaml .cargo/registry/x .gradle/caches/x library/books.txt documents/letter.txt local/bin/x
""".split()


@pytest.mark.parametrize("path", TRUSTED)
def test_what_other_programs_trust_is_protected(path: str) -> None:
    assert is_protected(tuple(path.split("/")))


@pytest.mark.parametrize("path", ORDINARY)
def test_ordinary_project_files_are_not(path: str) -> None:
    assert not is_protected(tuple(path.split("/")))


@pytest.mark.anyio
async def test_none_of_them_can_be_written_in_a_home_scope_there_or_not(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "plain.txt").write_text("plain\n")
    async with Road.open(tmp_path, [folder_scope(tmp_path / "root", "home")]) as road:
        before = sorted(path.relative_to(road.root) for path in road.root.rglob("*"))
        for path in TRUSTED:
            written = await road.code(
                "file.write", path, scope="home", input={"content": "x"}, options={"createParents": True}
            )
            moved = await road.code(
                "file.move", "plain.txt", scope="home", input={"destination": path}, options={"createParents": True}
            )
            assert (written, moved) == ("permission_denied", "permission_denied"), path
        assert sorted(path.relative_to(road.root) for path in road.root.rglob("*")) == before

"""Names that are protected from writing, and names that are sensitive to read, in any scope and in any case."""

import unicodedata
from functools import lru_cache

PROTECTED_NAMES = frozenset(
    """
    .git .gitconfig .gitmodules .hg .svn .husky .githooks
    .codex .claude .claude.json .cursor .cursorrules .vscode .idea .mcp.json .gemini .opencode opencode.json .windsurf
    .continue .zed .fleet .devcontainer .aider.conf.yml .computer-linker .agents
    .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin .zlogout .kshrc
    .cshrc .tcshrc .login .logout .inputrc .xinitrc .xprofile .xsession .xsessionrc .pam_environment .envrc .direnvrc
    .vimrc .exrc .nvimrc .emacs .emacs.d .tmux.conf .screenrc .curlrc .wgetrc .npmrc .yarnrc .yarnrc.yml .pnpmrc .pypirc
    .netrc .ssh .gnupg .aws .kube .docker .gdbinit .lldbinit .pythonstartup .irbrc .pryrc .rprofile .mailcap
    """.split()
)
"""Files that other programs execute or trust. Writing them is refused unless the scope says `allowProtected`."""

_TRUSTED_PLACES = """
    .config/autostart .config/autostart-scripts .config/systemd .config/environment.d .config/plasma-workspace .kde .kde4
    .config/i3 .config/sway .config/hypr .config/awesome .config/openbox .config/bspwm .config/qtile .config/waybar
    .config/fish .config/zsh .config/nushell .config/elvish .config/xonsh .config/powershell .config/starship.toml
    .config/git .config/pip .config/direnv .config/mise .config/tmux .config/gdb .config/lldb .config/containers
    .config/nvim .config/vim .config/emacs .config/nano .config/helix .config/kitty .config/alacritty .config/wezterm
    .config/code .config/vscodium .config/zed .config/opencode .config/goose .config/github-copilot .config/mcp
    .config/claude .config/crush .config/chromium .config/google-chrome .config/jupyter .config/matplotlib
    .config/mimeapps.list .config/user-dirs.dirs .config/electron-flags.conf
    .local/bin .local/lib .local/share/applications .local/share/systemd .local/share/bash-completion
    .local/share/dbus-1 .local/share/kservices5 .local/share/nautilus .local/share/gnome-shell .local/share/jupyter
    .vim .doom.d .spacemacs .spacemacs.d .oh-my-zsh .ipython .jupyter .julia/config .mozilla .hammerspoon .wezterm.lua
    .pip .cargo/config .cargo/config.toml .cargo/bin .cargo/env .m2/settings.xml .m2/extensions.xml .mavenrc .gradle/init.gradle
    .gradle/init.d .sbt .sbtrc .ant .bundle .gemrc .bazelrc .condarc .subversion .hgrc .cvsrc .bash_completion .mkshrc .xonshrc
    .pythonrc .pythonrc.py .perldb .psqlrc .sqliterc .my.cnf .nanorc .muttrc .mailrc .lesskey .lessfilter .ripgreprc
    .xresources .xdefaults .xmodmap .dmrc .selected_editor .forward .procmailrc .rhosts .shosts .k5login
    .roo .roomodes .clinerules .kiro .amazonq .copilot .qwen .lmstudio .crush.json .trae .augment .junie .vscode-server
    library/launchagents library/launchdaemons library/preferences documents/powershell documents/windowspowershell
    """
PROTECTED_PATHS: tuple[tuple[str, ...], ...] = (
    *(tuple(path.split("/")) for path in _TRUSTED_PLACES.split()),
    ("start menu", "programs", "startup"),
    ("library", "application support"),
)
"""Places that programs of a whole home take their orders from; closed like the names above, wherever they lie."""

_PATHS_BY_FIRST: dict[str, list[tuple[str, ...]]] = {}
for _path in PROTECTED_PATHS:
    _PATHS_BY_FIRST.setdefault(_path[0], []).append(_path)

_GIT_INTERNALS = frozenset({"objects", "refs", "hooks"})

SENSITIVE_NAMES = frozenset(
    """
    .env .envrc .netrc _netrc .pgpass .my.cnf .npmrc .pypirc .git-credentials .htpasswd .dockercfg .vault-token .boto .s3cfg
    id_rsa id_dsa id_ecdsa id_ed25519 id_ecdsa_sk id_ed25519_sk credentials credentials.json credentials.csv
    client_secret.json service-account.json service_account.json secrets.json secrets.yaml secrets.yml secrets.toml
    terraform.tfstate terraform.tfstate.backup .terraformrc shadow gshadow keystore.jks login.keychain
    .bash_history .zsh_history .python_history .node_repl_history .psql_history .mysql_history .sqlite_history
    cookies cookies.sqlite logins.json key4.db wallet.dat known_tokens.csv accesstokens.json
    """.split()
)
_SENSITIVE_SUFFIXES = (
    ".pem", ".key", ".p12", ".pfx", ".kdbx", ".keystore", ".jks", ".ppk", ".asc.key", ".keychain-db", ".ovpn", ".tfvars",
)  # fmt: skip
_SENSITIVE_FOLDERS = frozenset(
    {".ssh", ".gnupg", ".aws", ".azure", ".kube", ".password-store", ".cloudflared", ".computer-linker"}
)
_SENSITIVE_PATHS = ((".docker", "config.json"), (".config", "gcloud"), (".config", "gh"), (".git", "credentials"))
_HARMLESS_ENV = (".example", ".sample", ".template", ".dist", ".defaults")


@lru_cache(maxsize=4096)
def folded(name: str) -> str:
    """How a name compares: without case, compatibility forms, invisible characters, and trailing dots and spaces."""
    if name.isascii():
        # NTFS opens "GIT~1" as .git, and drops trailing dots and spaces.
        plain = name.rstrip(" .").casefold()
        return ".git" if plain == "git~1" else plain or name
    visible = "".join(char for char in name if unicodedata.category(char) != "Cf")
    return unicodedata.normalize("NFKC", visible).casefold().rstrip(" .") or name


@lru_cache(maxsize=16384)
def is_protected(parts: tuple[str, ...]) -> bool:
    """True for a file that another program would execute or trust."""
    names = tuple(folded(part) for part in parts)
    if any(name in PROTECTED_NAMES for name in names):
        return True
    return any(
        names[at : at + len(path)] == path for at, name in enumerate(names) for path in _PATHS_BY_FIRST.get(name, ())
    )


@lru_cache(maxsize=16384)
def is_sensitive(parts: tuple[str, ...]) -> bool:
    """True for a file that usually holds a secret."""
    if not parts:
        return False
    names = tuple(folded(part) for part in parts)
    if any(name in _SENSITIVE_FOLDERS for name in names):
        return True
    if any(_contains(names, path) for path in _SENSITIVE_PATHS):
        return True
    last = names[-1]
    if last.startswith(".env."):
        return not last.endswith(_HARMLESS_ENV)
    return last in SENSITIVE_NAMES or last.endswith(_SENSITIVE_SUFFIXES)


def looks_like_git_folder(names: frozenset[str]) -> bool:
    """True for a folder whose entries make git treat it as a repository (an embedded bare one has another name)."""
    return "HEAD" in names and len(_GIT_INTERNALS & names) >= 2


def _contains(names: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    size = len(wanted)
    return any(names[at : at + size] == wanted for at in range(len(names) - size + 1))

"""Names that are protected from writing, and names that are sensitive to read, in any scope and in any case."""

import unicodedata
from collections.abc import Container
from functools import lru_cache
from typing import Literal

from computer_linker.home import MARK_NAME
from computer_linker.policy.trusted_places import Path, places

PROTECTED_NAMES = frozenset(
    """
    .git .gitconfig .gitmodules .hg .svn .husky .githooks
    .codex .claude .claude.json .cursor .cursorrules .vscode .idea .mcp.json .gemini .opencode opencode.json .windsurf
    .continue .zed .fleet .devcontainer .aider.conf.yml .computer-linker .agents
    .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin .zlogout .kshrc
    .cshrc .tcshrc .login .logout .inputrc .xinitrc .xprofile .xsession .xsessionrc .pam_environment .envrc .direnvrc
    .vimrc .exrc .nvimrc .emacs .emacs.d .tmux.conf .screenrc .curlrc .wgetrc .npmrc .yarnrc .yarnrc.yml .pnpmrc .pypirc
    .ssh .gnupg .aws .kube .docker .gdbinit .lldbinit .pythonstartup .irbrc .pryrc .rprofile .mailcap
    """.split()
)
"""Files that other programs execute or trust. Writing them is refused unless the scope has `allowProtected`."""

PROTECTED_PATHS = places("run", "tool", "login", "secret")
"""Paths that configure programs of the whole home; protected like the names above, in any folder."""

HOME_PATHS = places("home", "home-tool")
"""Places with ordinary names, closed only in the home of the service's user."""

TOOL_PATHS = places("tool", "home-tool")
"""Tool folders in the home that every sandbox shows; each is protected, so that no scope can change what another runs."""

SENSITIVE_PATHS = places("secret")
LOGIN_PATHS = places("login")


SENSITIVE_NAMES = frozenset(
    """
    .env .envrc .netrc _netrc .pgpass .my.cnf .npmrc .pypirc .git-credentials .htpasswd .dockercfg .vault-token .boto .s3cfg
    id_rsa id_dsa id_ecdsa id_ed25519 id_ecdsa_sk id_ed25519_sk credentials credentials.json credentials.csv
    client_secret.json service-account.json service_account.json secrets.json secrets.yaml secrets.yml secrets.toml
    terraform.tfstate terraform.tfstate.backup .terraformrc shadow gshadow keystore.jks login.keychain
    .bash_history .zsh_history .python_history .node_repl_history .psql_history .mysql_history .sqlite_history
    credentials.toml .credentials .credentials.json oauth_creds.json mcp-oauth-tokens.json kaggle.json .histfile .zhistory
    .irb_history .redis_history .rediscli_history .mongo_history .dbshell .lesshst .viminfo .mysql_history .pgcli_history
    cookies cookies.sqlite cookies.binarycookies logins.json key4.db wallet.dat known_tokens.csv accesstokens.json
    """.split()
) | {MARK_NAME}
_SENSITIVE_SUFFIXES = (
    ".pem", ".key", ".p12", ".pfx", ".kdbx", ".keystore", ".jks", ".ppk", ".asc.key", ".keychain-db", ".ovpn", ".tfvars",
)  # fmt: skip
_HARMLESS_ENV = (".example", ".sample", ".template", ".dist", ".defaults")


@lru_cache(maxsize=4096)
def folded(name: str) -> str:
    """Normalise a name for comparison: without case, compatibility forms, invisible characters, trailing dots and spaces."""
    if name.isascii():
        # NTFS opens "GIT~1" as .git, and drops trailing dots and spaces.
        plain = name.rstrip(" .").casefold()
        return ".git" if plain == "git~1" else plain or name
    visible = "".join(char for char in name if unicodedata.category(char) != "Cf")
    return unicodedata.normalize("NFKC", visible).casefold().rstrip(" .") or name


@lru_cache(maxsize=16384)
def is_protected(parts: tuple[str, ...]) -> bool:
    """True for a file that another program would execute or trust."""
    names = tuple(map(folded, parts))
    return not PROTECTED_NAMES.isdisjoint(names) or _has_path(names, _PROTECTED_BY_FIRST)


def held_in(folder: Path, below_home: Path | None) -> Literal["logins", "programs"] | None:
    """What a folder holds that no project has: keys and logins, or files that other programs execute. None for neither.

    `folder` is its whole path, `below_home` its path inside the home, None outside. A name inside such a folder does not show
    what it is: `config` in `.ssh`.
    """
    if _has_path(tuple(map(folded, folder)), _SENSITIVE_BY_FIRST):
        return "logins"
    names = tuple(map(folded, below_home or ()))
    if not names:
        return None
    if any(path[: len(names)] == names for path in SENSITIVE_PATHS):
        return "logins"
    trusted = (*PROTECTED_PATHS, *HOME_PATHS)
    # A folder around one of these, such as `Documents` or `go`, is an ordinary one: their names are closed in it.
    return "programs" if any(names[: len(path)] == path for path in trusted) else None


GIT_NAMES = frozenset({"HEAD", "objects", "refs", "commondir", "config", "config.worktree", "hooks"})
"""The entries by which git recognises a repository, whatever its name, and what git then executes or obeys."""


def is_git_folder(names: Container[str]) -> bool:
    """True for a folder with these entries that git takes for a repository (setup.c, is_git_directory)."""
    return "HEAD" in names and ("commondir" in names or ("objects" in names and "refs" in names))


@lru_cache(maxsize=16384)
def is_sensitive(parts: tuple[str, ...]) -> bool:
    """True for a file that usually holds a secret."""
    return bool(parts) and _is_sensitive(tuple(map(folded, parts)))


@lru_cache(maxsize=16384)
def is_login(parts: tuple[str, ...]) -> bool:
    """True for settings that may hold a token which their own program needs, such as `.git/config`.

    File operations do not read them. Commands do: git does not work without its config.
    """
    return _is_login(tuple(map(folded, parts)))


@lru_cache(maxsize=16384)
def is_private(parts: tuple[str, ...]) -> bool:
    """True for what file operations neither read nor list: a secret, or a login."""
    if not parts:
        return False
    names = tuple(map(folded, parts))
    return _is_sensitive(names) or _is_login(names)


def _is_sensitive(names: Path) -> bool:
    last = names[-1]
    if last in SENSITIVE_NAMES or last.endswith(_SENSITIVE_SUFFIXES) or _has_path(names, _SENSITIVE_BY_FIRST):
        return True
    return last.startswith(".env.") and not last.endswith(_HARMLESS_ENV)


def _is_login(names: Path) -> bool:
    if _has_path(names, _LOGIN_BY_FIRST):
        return True
    # Submodules and worktrees have such a file of their own, at any depth of `.git`.
    return len(names) > 1 and names[-1] in _GIT_SETTINGS and ".git" in names[:-1]


def _has_path(names: Path, by_first: dict[str, tuple[Path, ...]]) -> bool:
    """True when one of the paths occurs anywhere in the names."""
    for at, name in enumerate(names):
        for path in by_first.get(name, ()):
            if names[at : at + len(path)] == path:
                return True
    return False


def _by_first(paths: tuple[Path, ...]) -> dict[str, tuple[Path, ...]]:
    found: dict[str, tuple[Path, ...]] = {}
    for path in paths:
        found[path[0]] = (*found.get(path[0], ()), path)
    return found


_PROTECTED_BY_FIRST = _by_first(PROTECTED_PATHS)
_SENSITIVE_BY_FIRST = _by_first((*SENSITIVE_PATHS, (".computer-linker",)))
_LOGIN_BY_FIRST = _by_first(LOGIN_PATHS)
_GIT_SETTINGS = frozenset({"config", "config.worktree"})

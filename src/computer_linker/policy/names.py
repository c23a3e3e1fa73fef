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

PROTECTED_PATHS = (
    (".config", "autostart"),
    (".config", "systemd"),
    (".config", "fish"),
    (".config", "git"),
    (".config", "environment.d"),
    (".config", "opencode"),
    (".config", "zed"),
    (".config", "code"),
    (".local", "bin"),
    (".local", "share", "applications"),
    (".local", "share", "systemd"),
    ("library", "launchagents"),
    ("library", "launchdaemons"),
    ("start menu", "programs", "startup"),
)

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
_SENSITIVE_FOLDERS = frozenset({".ssh", ".gnupg", ".aws", ".azure", ".kube", ".password-store", ".computer-linker"})
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
    return any(_contains(names, path) for path in PROTECTED_PATHS)


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

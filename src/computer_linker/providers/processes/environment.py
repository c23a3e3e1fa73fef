"""The environment of a command: built from an allow list, never inherited whole."""

import re
from collections.abc import Mapping

from computer_linker.errors import InvalidRequest, PermissionDenied
from computer_linker.system import KEPT_VARIABLES, os

_KEPT = frozenset({"HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "COLORTERM", "NO_COLOR", "FORCE_COLOR"})
_TRUSTED_FILES = frozenset(
    {"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "GIT_SSL_CAINFO"}
)
_FROM_SERVICE = tuple(sorted(_KEPT | _TRUSTED_FILES | set(KEPT_VARIABLES)))
_HARMLESS = frozenset(
    """
    CI DEBUG NODE_ENV PORT HOST LOG_LEVEL VERBOSE TERM COLUMNS LINES NO_COLOR FORCE_COLOR COLORTERM LANG LC_ALL TZ
    RUST_LOG RUST_BACKTRACE PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE RAILS_ENV RACK_ENV APP_ENV FLASK_ENV TEST_ENV
    """.split()
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
TAKES_OVER = re.compile(
    r"""(?x)
    LD_.* | DYLD_.* | GLIBC_TUNABLES | GCONV_PATH | LOCPATH | NLSPATH | MALLOC_.* | HOSTALIASES | RES_OPTIONS | LOCALDOMAIN
    | PATH | HOME | SHELL | USER | LOGNAME | PWD | OLDPWD | IFS | ENV | BASH_.* | BASHOPTS | SHELLOPTS | PS[0-4]
    | PROMPT_COMMAND | ZDOTDIR | CDPATH | FPATH | TMPDIR | TMP | TEMP | XDG_.* | DBUS_.* | DISPLAY | WAYLAND_DISPLAY
    | NODE_.* | ELECTRON_.* | NPM_CONFIG_.* | npm_.* | YARN_.* | PNPM_.* | BUN_.* | DENO_.*
    | PYTHON.* | PIP_.* | UV_.* | VIRTUAL_ENV | CONDA_.* | PERL.* | RUBY.* | GEM_.* | BUNDLE_.*
    | JAVA_.* | _JAVA_OPTIONS | JDK_.* | MAVEN_.* | GRADLE_.* | CLASSPATH | LUA_.* | PHP.*
    | DOTNET_.* | CORECLR_.* | COR_.* | COMPLUS_.* | ERL_.* | ELIXIR_.* | JULIA_.* | R_.* | GHC.* | OCAML.* | NIX_.*
    | OPENSSL_.* | GNUTLS_.* | KRB5.* | SASL_.* | PKCS11_.* | CURL_HOME | WGETRC | NETRC | .*_RSH | SVN_.* | RSYNC_.*
    | TAR_OPTIONS | ZIPOPT | UNZIP.* | GREP_OPTIONS | RIPGREP_.* | FZF_.* | BAT_.* | HIST.* | MAIL.* | FCEDIT
    | GTK_.* | QT_.* | GIO_.* | GST_.* | G_.* | LIBGL_.* | VK_.* | MESA_.* | ALSA_.* | PULSE_.* | FONTCONFIG_.*
    | PKG_CONFIG.* | CMAKE_.* | CCACHE_.* | DISTCC_.* | PYENV_.* | RBENV_.* | NVM_.* | ASDF_.* | MISE_.* | DIRENV_.* | HOMEBREW_.*
    | COMSPEC | PATHEXT | PSMODULEPATH | WINE.* | FAKEROOT.* | PROOT_.* | QEMU_.* | BWRAP.* | STRACE_.* | LTRACE_.* | GDB.*
    | GO(?:FLAGS|PATH|ROOT|ENV|TOOLCHAIN|PROXY)
    | RUSTC.* | RUSTFLAGS | RUSTUP_.* | CARGO_.* | CC | CXX | CPP | LD | MAKEFLAGS | MAKEFILES | GNUMAKEFLAGS
    | GIT_.* | SSH_.* | GPG_.* | SUDO_.* | EDITOR | VISUAL | .*PAGER | .*_EDITOR | BROWSER | LESS.* | MAN.* | TERMINFO.* | TERMCAP
    | CODEX_.* | CLAUDE_.* | ANTHROPIC_.* | OPENAI_.* | COMPUTER_LINKER_.* | DOCKER_.* | KUBECONFIG | AWS_.* | AZURE_.*
    | GOOGLE_.* | HTTPS?_PROXY | ALL_PROXY | NO_PROXY | FTP_PROXY | SYSTEMD_.* | AWKPATH | AWKLIBPATH | VIM.* | EXINIT | INPUTRC
    | POSIXLY_CORRECT | _POSIX2_VERSION
    """,
    re.IGNORECASE,
)
"""Variables that choose what code runs, its search paths, or its user."""


def inherited(service: Mapping[str, str]) -> dict[str, str]:
    """The part of the service's environment that every command gets."""
    env = {name: service[name] for name in _FROM_SERVICE if name in service}
    env |= {name: value for name, value in service.items() if name.startswith("LC_")}
    env.setdefault("LANG", "C.UTF-8")
    env["TERM"] = "xterm-256color"
    # Prompts on a display or through another program could not be answered.
    env |= {"GIT_TERMINAL_PROMPT": "0", "PAGER": "cat", "GIT_PAGER": "cat"}
    return env


def build(
    kept: Mapping[str, str],
    service: Mapping[str, str],
    given: Mapping[str, str],
    *,
    passed: list[str],
    search_path: tuple[str, ...],
    boundary_holds: bool,
) -> dict[str, str]:
    """The child's whole environment. Raises for a variable the caller may not set."""
    env = dict(kept)
    env["PATH"] = os.pathsep.join(search_path)
    for entry in passed:
        name, has_value, value = entry.partition("=")
        if has_value:
            env[name] = value
        elif name in service:
            env[name] = service[name]
    if given:
        names = {entry.partition("=")[0] for entry in passed}
        for name, value in given.items():
            _check(name, value, names, boundary_holds=boundary_holds)
            env[name] = value
    return env


def _check(name: str, value: str, passed: set[str], *, boundary_holds: bool) -> None:
    if not _NAME.fullmatch(name):
        raise InvalidRequest("A variable's name has letters, digits and underscores only.", field="env")
    if "\0" in value or not _is_text(value):
        raise InvalidRequest(f"The value of {name} cannot be passed to a program.", field="env")
    if name in passed or name in _HARMLESS:
        return
    if TAKES_OVER.fullmatch(name) or not boundary_holds:
        raise PermissionDenied(
            f"{name} can change which programs run, so a request may not set it. "
            "The owner can list it in the scope's policy `environment`.",
            rule="environment",
            variable=name,
        )


def _is_text(value: str) -> bool:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True

"""The known language servers: programs, languages, and the settings that keep them from running a project's code."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from computer_linker.policy.writers import SYSTEM_FOLDERS


@dataclass(frozen=True, slots=True)
class Kind:
    """One language server."""

    name: str
    programs: tuple[tuple[str, ...], ...]
    """Commands that start it, best first; the first word is looked up."""
    suffixes: Mapping[str, str]
    """File endings, with the protocol's name of their language."""
    install: str
    """The command that installs it."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Answers to what it asks of the client's configuration, by section."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Its `initializationOptions`."""
    env: Mapping[str, str] = field(default_factory=dict)
    needs: Mapping[str, str] = field(default_factory=dict)
    """Programs that it runs. With a path: the folder two above is the program's toolchain if the path exists in it."""
    needs_tools: bool = False
    """It runs programs of a toolchain, which may lie in the home and have settings of the machine."""
    listed: str = ""
    """What it logs once it has listed the root's files: until then its answers lack some of a name's uses."""
    reports_ready: bool = False
    """It reports when it has loaded the project (`experimental/serverStatus`); its answers before that are empty."""
    lists_definitions: bool = True
    """Whether the uses of a name include its definition in a file that is not open."""
    version_argument: str = "--version"
    is_launcher: bool = False
    """Its name may be there without the program: rustup's `rust-analyzer` only passes on to a component."""


_ANALYSIS = {
    "diagnosticMode": "openFilesOnly",
    "autoSearchPaths": True,
    "useLibraryCodeForTypes": True,
    "autoImportCompletions": False,
    "logLevel": "Information",
}
_SCRIPT = {
    ".ts": "typescript",
    ".mts": "typescript",
    ".cts": "typescript",
    ".tsx": "typescriptreact",
    ".js": "javascript",
    ".mjs": "javascript",
    ".cjs": "javascript",
    ".jsx": "javascriptreact",
}
_C = {".c": "c", ".h": "cpp", ".cc": "cpp", ".cpp": "cpp", ".cxx": "cpp", ".hpp": "cpp", ".hh": "cpp", ".hxx": "cpp"}

KINDS = (
    Kind(
        "pyright",
        (("pyright-langserver", "--stdio"), ("basedpyright-langserver", "--stdio")),
        {".py": "python", ".pyi": "python"},
        "npm install -g pyright (or: pipx install basedpyright)",
        {"python": {"analysis": _ANALYSIS}, "python.analysis": _ANALYSIS, "basedpyright.analysis": _ANALYSIS},
        needs={"node": ""},
        listed=r"(?:Found \d+|No) source file",
    ),
    Kind(
        "typescript-language-server",
        (("typescript-language-server", "--stdio"),),
        _SCRIPT,
        "npm install -g typescript-language-server typescript@5",
        options={
            "hostInfo": "computer-linker",
            # Plugins of the project and downloads of type packages stay off; the project's own tsserver is not used.
            "disableAutomaticTypingInstallation": True,
            "plugins": [],
            # A second server for syntax would answer while the project loads, without looking into other files.
            "tsserver": {"logVerbosity": "off", "useSyntaxServer": "never"},
            "preferences": {"includeCompletionsForModuleExports": False},
        },
        needs={"node": ""},
    ),
    Kind(
        "clangd",
        # Without --query-driver no compiler that a project names is executed.
        (
            (
                "clangd",
                "--background-index",
                "--enable-config=0",
                "--log=error",
                "--limit-references=0",
                "--limit-results=0",
            ),
        ),
        _C,
        "apt-get install clangd",
        options={"clangdFileStatus": True},
        lists_definitions=False,
    ),
    Kind(
        "gopls",
        (("gopls",),),
        {".go": "go"},
        "go install golang.org/x/tools/gopls@latest",
        needs={"go": "src/runtime"},
        version_argument="version",
        needs_tools=True,
        env={
            "GOPROXY": "off",
            "GOSUMDB": "off",
            # The sandbox's own: what is compiled is not kept.
            "GOCACHE": "/tmp/go-build",  # noqa: S108
            "GOTOOLCHAIN": "local",
            "GOFLAGS": "-mod=readonly",
            "CGO_ENABLED": "0",
            "GOTELEMETRY": "off",
        },
    ),
    Kind(
        "rust-analyzer",
        (("rust-analyzer",),),
        {".rs": "rust"},
        "rustup component add rust-analyzer",
        {
            "rust-analyzer": {
                "cargo": {"buildScripts": {"enable": False}},
                "procMacro": {"enable": False},
                "checkOnSave": False,
                "files": {"watcher": "client"},
            }
        },
        {
            "cargo": {"buildScripts": {"enable": False}},
            "procMacro": {"enable": False},
            "checkOnSave": False,
            "files": {"watcher": "client"},
        },
        {"CARGO_NET_OFFLINE": "true"},
        needs={"cargo": "", "rustc": ""},
        needs_tools=True,
        reports_ready=True,
        is_launcher=True,
    ),
    Kind(
        "jdtls",
        (("jdtls", "-data", "/tmp/jdtls"),),  # noqa: S108  # the sandbox's own
        {".java": "java"},
        "See github.com/eclipse-jdtls/eclipse.jdt.ls, or: brew install jdtls",
        needs_tools=True,
        options={
            "settings": {
                "java": {
                    "import": {"gradle": {"enabled": False}, "maven": {"enabled": False}},
                    "autobuild": {"enabled": False},
                }
            }
        },
    ),
)
BY_SUFFIX = {suffix: kind for kind in KINDS for suffix in kind.suffixes}
SYSTEM_PATH = ":".join(SYSTEM_FOLDERS[:3])


def kind_of(name: str) -> Kind | None:
    """The server of a file by its ending."""
    dot = name.rfind(".")
    return BY_SUFFIX.get(name[dot:].lower()) if dot >= 0 else None


def language_id(name: str) -> str:
    """The protocol's name of a file's language."""
    kind = kind_of(name)
    return "plaintext" if kind is None else kind.suffixes[name[name.rfind(".") :].lower()]

"""What may be kept of a value: by allow list; everything else becomes a keyed digest and a length."""

import re
from functools import lru_cache

from computer_linker.audit.command_line import command_preview
from computer_linker.audit.masks import is_random, looks_secret
from computer_linker.audit.secret import Key

MAX_PREVIEW = 200
"""A path preview is cut here; the digest that follows distinguishes two long ones."""

MAX_NAME = 80
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._:@/()+,-]{0,79}\Z")
_HANDLE = re.compile(r"(?:[a-z]{2,12}_[0-9a-f]{24}|(?:session_|http-)[0-9a-f]{16})\Z")
"""Ids that the service itself gives: of processes, agents, connections, and of OAuth and HTTP sessions."""
_ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}\Z")
_BASE64 = re.compile(r"(?=.*[A-Z0-9])[A-Za-z0-9+=_-]{20,}\Z")
_HEX = re.compile(r"(?:sha256:)?[0-9a-f]{16,64}\Z")
_PLACE = re.compile(
    r"(?:primary|focused|desktop|screen|start|stop|:?\d{1,12}|0x[0-9a-fA-F]{1,12}|[a-z]{1,10}[:_-]?\d{1,10})\Z"
)
_OPERATION = re.compile(r"[a-z]{2,12}\.[a-z][a-z_]{1,23}\Z")
_NOUNS = frozenset(
    [
        *("file", "code", "git", "package", "command", "process", "codex", "screen", "ui", "desktop", "window", "app"),
        *("clipboard", "confirm", "artifact", "backend", "history", "computer", "batch", "notifications", "browser"),
    ]
)
_PATH_NOUNS = frozenset({"file", "code", "document", "git", "package"})
_FOLDER_OPS = frozenset(
    {"command.run", "command.start", "codex.run", "codex.start", "process.start", "artifact.attach"}
)
PATH_FACTS = frozenset({"path", "root", "file", "destination"})
_NAMED_OPS = frozenset({"app.close", "app.focus", "app.open", "screen.capture_process", "ui.tree"})
"""Operations on a program by its name."""
_PROGRAM = re.compile(r"[A-Za-z][A-Za-z0-9._-]{1,59}\Z")
_DIGEST = re.compile(r"\[\d{1,9} characters, [0-9a-f]{16}\]")
_ADDRESS = re.compile(r"\[[0-9A-Fa-f:.]{2,45}\](?::\d{1,5})?\Z")
"""An IPv6 address as the list of a scope's hosts has it."""
_DIGEST_NAMES = ("sha256", "digest", "hash", "commit", "before", "after")


@lru_cache(maxsize=8192)
def label(text: str, key: Key) -> str:
    """A short name (scope, client, session): kept when it is plain and no credential, else a digest."""
    if _ULID.match(text) or _HANDLE.match(text):
        return text
    return text if _LABEL.match(text) and not looks_secret(text) else digest_of(text, key)


@lru_cache(maxsize=1024)
def client_name(text: str, key: Key) -> str:
    """The name that a client gives itself, for people to recognise it by: kept unless it is shaped like a credential."""
    return digest_of(text, key) if looks_secret(text) else escaped(text[:MAX_NAME])


@lru_cache(maxsize=1024)
def unknown_operation(text: str, key: Key) -> str:
    """The name of an operation that does not exist: kept when its noun exists (a typing error), else a digest."""
    known = _OPERATION.match(text) and text.partition(".")[0] in _NOUNS and not looks_secret(text)
    return text if known else digest_of(text, key)


@lru_cache(maxsize=8192)
def preview(op: str, target: str, key: Key) -> str:
    """What is kept of a target: a path, a handle or a place on the screen; a digest of anything else."""
    if not target:
        return ""
    if has_path(op):
        return path_preview(target, key)
    if op in _NAMED_OPS and _PROGRAM.match(target):
        return label(target, key)
    known = _HANDLE.match(target) or _ULID.match(target) or _PLACE.match(target)
    return target if known else digest_of(target, key)


def has_path(op: str) -> bool:
    """Whether the target of an operation is a path."""
    return op.partition(".")[0] in _PATH_NOUNS or op in _FOLDER_OPS


def is_digest(text: str) -> bool:
    """Whether a value was kept as its digest alone."""
    return _DIGEST.fullmatch(text) is not None


def path_preview(path: str, key: Key) -> str:
    """A path with every name that is shaped like a credential replaced, made visible, and bounded."""
    head = path[:MAX_PREVIEW]
    names = [digest_of(name, key) if name and looks_secret(name) else name for name in head.split("/")]
    if _spans_names([name for name in names if not name.startswith("[")]):
        return digest_of(path, key)
    shown = "/".join(names)
    shown = escaped(shown)[:MAX_PREVIEW]
    return shown if len(path) <= MAX_PREVIEW else f"{shown}… {digest_of(path, key)}"


def _spans_names(names: list[str]) -> bool:
    """True when a credential holds a slash, as base64 and addresses do."""
    stems = [*names[:-1], names[-1].partition(".")[0]] if names else []
    joined = ("".join(stems[at : at + size]) for size in (2, 3) for at in range(len(stems) - size + 1))
    return any(_BASE64.match(run) and is_random(run, wordlike=4) for run in joined) or looks_secret("/".join(names))


def fact(name: str, text: str, key: Key) -> str:
    """A string an operation chose to keep: a word, an id, or a digest under a name that marks it as one."""
    if _ULID.match(text) or (_HEX.match(text) and any(word in name.lower() for word in _DIGEST_NAMES)):
        return text
    if name in PATH_FACTS:
        return path_preview(text, key)
    if name == "entry" and _ADDRESS.match(text):
        return text
    if name in ("clients", "asker"):
        return client_name(text, key)
    if name in ("changed", "command", "does"):
        return reason(command_preview(text), key)
    return label(text, key)


def reason(text: str, key: Key) -> str:
    """The reason of a refusal, as the policy gives it."""
    return digest_of(text, key) if looks_secret(text) else escaped(text)[:MAX_PREVIEW]


def digest_of(text: str, key: Key) -> str:
    """A keyed digest and a length: enough to compare two values, without their contents."""
    return f"[{len(text)} characters, {key.digest(text)}]" if text else ""


def escaped(text: str) -> str:
    """Control, bidi and other invisible characters made visible."""
    return text if text.isascii() and text.isprintable() else "".join(map(_visible, text))


def _visible(char: str) -> str:
    return char if char.isprintable() else f"\\u{{{ord(char):x}}}"

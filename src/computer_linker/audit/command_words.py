"""Masks what no rule about a program covers: each part of a command line that looks like no ordinary word.

A list of programs that take a password is never complete, so this looks at spelling alone.
A secret that is a plain word is not seen.
"""

import re
import shlex

from computer_linker.audit.masks import MASK

_TOKEN = re.compile(r"(?:'[^']*'|\"[^\"]*\"|[^\s'\"])+|\s+|['\"]")
_ENDS = re.compile(r"[|;&(]+\Z|.*[;(]\Z")
_BEFORE_A_PROGRAM = frozenset(("sudo", "env", "exec", "time", "nohup", "do", "then", "xargs"))
_STORES = frozenset(
    (
        "secret",
        "secrets",
        "password",
        "passwords",
        "passwd",
        "token",
        "tokens",
        "credential",
        "credentials",
        "config:set",
    )
)
_VERBS = frozenset(
    ("set", "put", "create", "add", "update", "list", "ls", "get", "view", "rm", "remove", "delete", "generic", "rotate", "show")
)  # fmt: skip
_NAME = re.compile(r"(--?[\w.-]+=|[A-Za-z_][\w.]*=)(.*)\Z", re.DOTALL)
_CODE = re.compile(
    r"((?:^|[\s/;&|(])(?:(?:python|node|ruby|perl|php|lua|bash|zsh|dash|fish|sh|deno|bun|pwsh)[\d.]*|Rscript|osascript)"
    r"\s(?:[^\n;|]*?\s)?-{1,2}(?:\w{0,3}[cer]|eval|command)\s+|\s-[ce]\s+(?=['\"]))"
    r"((?:'[^']*'|\"[^\"]*\"|[^\s'\"])+)"
)
_EXPECT = re.compile(r"((?:^|[\s/;&|(])expect\s(?:[^\n;|]*?\s)?-c\s+)((?:'[^']*'|\"[^\"]*\"|[^\s'\"])+)")
_PIECE = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|`[^`]*`|[^'\"`]+|['\"`]", re.DOTALL)
_STATEMENT = re.compile(r"[;\n]")
_SECRET_NAME = re.compile(
    r"(?i)pw|pass|secret|token|key|auth(?!or)|login|\bsign|cred|crypt|cookie|bearer|hmac|otp\b|\bpin\b|unlock|connect"
)
"""In a statement with such a name, every text is masked."""
_REMEMBERED = 200
_PARTS = re.compile(r"[-_.:=,/+(){}\[\]<>'\"`;|~?*\\@]+")
_FILE = re.compile(r"['\"]?[\w.*?{},-]+\.[A-Za-z]\w{0,7}['\"]?\Z")
_FIT = re.compile(r"(?:[A-Z]?[a-z]+|[A-Z]+|[0-9]+|[A-Za-z]?[a-z]*(?:[A-Z]{1,4}[a-z]{2,})+|[A-Z]+[a-z]?s?)\Z")
_TERM = re.compile(
    r"(?:python|py|node|sha|utf|ipv|base|md|sqlite|x|amd|arm|aarch|win|int|uint|float|ubuntu|debian|gcc|clang|java|jdk|php|ruby"
    r"|http|bzip|postgres|postgresql|webkit2?gtk|es|v|issue|pr|release|test|step|phase|level|part|chapter|h|mp|log)\d{1,5}"
    r"(?:mb|gb|kb|ms|sum|[a-z])?\Z|\d+(?:[a-z]{1,3}|[KMGT]i?B?)\Z|(?:v?\d+[a-z]\d+)\Z"
)  # fmt: skip
_SIGNS = re.compile(r"[A-Za-z0-9][!#$%^&]+[A-Za-z0-9]|[A-Za-z]\d.*[!#%^]|[!#%^&][A-Za-z]*\d")
MAYBE_ODD = re.compile(r"[A-Za-z]\d|\d[A-Za-z]|[a-z][A-Z]|[A-Z]{2}[a-z]|[!#$%^&]")
"""What a line without an odd word does not have."""


def without_code(text: str) -> str:
    """Mask what may be a secret in programs that are given inline; what `expect` sends is always masked."""
    text = _EXPECT.sub(rf"\1{MASK}", text)
    return _CODE.sub(lambda found: found[1] + _readable(found[2]), text)


def _readable(word: str) -> str:
    """The code of one word with its texts masked where a name beside them suggests a secret; in quotes, for reading."""
    try:
        [code] = shlex.split(word)
    except ValueError:
        return MASK
    shown, names = [], ""
    for piece in _PIECE.findall(code):
        is_text = len(piece) > 1 and piece[0] in "'\"`"
        shown.append(MASK if is_text and _SECRET_NAME.search(names) else piece)
        names = (names + piece if is_text else _STATEMENT.split(names + piece)[-1])[-_REMEMBERED:]
    code = "".join(shown)
    mark = "'" if "'" not in code else '"'
    return shlex.quote(code) if mark in code else f"{mark}{code}{mark}"


def without_odd_words(text: str) -> str:
    """Mask what follows a subcommand about secrets, and every word that looks like no ordinary one."""
    shown, position, stores, last = [], 0, False, ""
    for token in _TOKEN.findall(text):
        if token.isspace():
            shown.append(token)
            continue
        if _ENDS.match(token):
            position, stores, last = 0, False, ""
            shown.append(token)
            continue
        shown.append(_stored(token) if stores else token if position == 0 and "=" not in token else _seen(token))
        is_program = position == 0 and ("=" in token or token in _BEFORE_A_PROGRAM)
        stores = stores or (0 < position <= 3 and token.lower() in _STORES and not last.startswith("-"))
        position, last = (0 if is_program else position + 1), token
    return "".join(shown)


def _stored(token: str) -> str:
    """A word behind `secret`, `password` and the like: a verb or the name of an option stays."""
    if token in _VERBS or token == "-" or token.startswith("<") or MASK in token:  # noqa: S105 - a dash is no password
        return token
    if token.startswith("-"):
        name, equals, _ = token.partition("=")
        return f"{name}={MASK}" if equals else token
    return MASK


def _seen(token: str) -> str:
    if MASK in token or "://" in token or not MAYBE_ODD.search(token) or _FILE.match(token):
        return token
    named = _NAME.match(token)
    name, value = (named[1], named[2]) if named else ("", token)
    if value.startswith("/") or ("/" in value and not _SIGNS.search(value)):
        return token
    if value[:1] in "'\"" and " " in value:
        return name + re.sub(r"[^\s'\"]+", lambda word: MASK if _is_odd(word[0]) else word[0], value)
    return name + MASK if _is_odd(value) else token


def _is_odd(word: str) -> bool:
    """True for a word that is neither written like a word nor a known name with a number in it."""
    if len(word.strip("'\"")) < 6 or word.startswith("$") or _FILE.match(word):
        return False
    if _SIGNS.search(word):
        return True
    return any(len(part) >= 6 and not _FIT.match(part) and not _TERM.match(part) for part in _PARTS.split(word))

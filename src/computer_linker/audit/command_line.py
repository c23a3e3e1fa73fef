"""A command line as the history keeps it: readable, with what looks like a secret masked, and bounded.

`masks.py` recognises a credential by its form. A command line adds: which word is an option's value, which option of which
program takes a password, and what is piped to a program that reads one.
"""

import re
import shlex
from collections.abc import Sequence

from computer_linker.audit.masks import MASK, is_random, looks_secret, masked

MAX_PREVIEW = 300
_NEEDS_QUOTES = re.compile(r"[\s'\"]")
_PLAIN_LINE = re.compile(r"[A-Za-z0-9._/ -]*\Z")
_SUSPECT = re.compile(
    r"(?i)pass|pwd|secret|token|key|auth|login|cred|sig|pin|otp| -[a-z]*[puwaxt]|sqlplus|net use|wpa|consul|jwt| mc "
    r"|openssl|keygen|obscure|vault|dbus|expect|knife| -[a-z]*[cekns] |config:set|unlock|pw\b|psk|crypt|digest|identified"
)
"""A plain line without any of these is kept without further parsing."""
_BASE64 = re.compile(r"(?<![\w/.-])[A-Za-z0-9+/]{32,}={0,2}(?![\w/.-])")
_WORD = r"(?:'[^']*'|\"[^\"]*\"|[^\s'\"]+)"
_HERE_STRING = re.compile(rf"(<<<\s*)({_WORD})")
_HERE_DOCUMENT = re.compile(r"(<<-?\s*['\"]?(\w+)['\"]?)(.*?)(\n\2\b|\Z)", re.DOTALL)
_ASKS = (
    r"sudo|docker|podman|passwd|chpasswd|login|base64|gh|gpg|openssl|cryptsetup|kinit|su|doas|pass|smbpasswd|age|wrangler|vault"
    r"|kubectl|mount\S*|ansible-vault|gcloud|op|bw|doppler|heroku|vercel|fly|flyctl|keyctl|mysql|psql|ssh|ssh-add|htpasswd"
)
"""Programs that read a secret from what is piped to them."""
_PRIVATE_FILE = r"id_|key|pem|token|secret|\.env|credential"
_PIPED = re.compile(
    rf"((?:^|[;&|('\"]\s*|\s)(?:echo|printf)(?:\s+-\w+|\s+['\"]?%s(?:\\n)?['\"]?)*\s+)({_WORD})"
    rf"(\s*\|\s*(?:sudo\s+)?\S*(?:{_ASKS})\b|\s*>+\s*\S*(?:{_PRIVATE_FILE})|\s*\))"
)
_OPTION = r"(?:pass(?:word|wd|phrase|in|out)?|pwd|[uo]?pw|psk|secret|token|api-?key|access-?key|private-?key|hmac|credential)s?"
_FOLLOWS = re.compile(
    rf"(?i)((?:^|[\s'\"\[])(?:-{{1,2}}[\w.-]*{_OPTION}(?:[_-]?\w+)?|[\w.:-]*(?:password|psk|_pw)|identified by|pypi-token\.\w+)"
    rf"(?:=|['\"\]]*\s+|\s+pass:|=pass:))({_WORD})"
)
_PROGRAMS = {
    r"(?:mysql\w*|mariadb\w*)": r"-p",
    r"(?:7z\w*|rar|unrar)": r"-h?p",
    r"(?:docker login|podman login|az|twine|ncftpput|sshpass|rdesktop|veracrypt)": r"-p(?:\s+|=)",
    r"(?:zip|unzip|sqlcmd|isql|bcp|ipmitool)": r"-P\s*",
    r"(?:redis-cli)": r"-a\s+",
    r"(?:ldapsearch|ldapadd|ldapmodify|ldappasswd|kadmin)": r"-[sw]\s+",
    r"(?:snmp\w+)": r"-[Ac]\s+",
    r"(?:qpdf)": r"--encrypt\s+",
    r"(?:signtool)": r"/p\s+",
    r"(?:pulumi)": r"--secret\s+\S+\s+",
    r"(?:iwconfig)": r"key\s+",
    r"(?:snmp[a-z]+)": r"-X\s+",
    r"(?:xfreerdp\w*)": r"/p:",
    r"(?:openssl)": r"(?:-[Kk]\s+|-hmac\s+|pass:)",
    r"(?:ssh-keygen)": r"-[NP]\s*",
    r"(?:useradd|usermod|mongo\w*|steghide)": r"-p\s*",
    r"(?:security)": r"-[wp]\s+",
    r"(?:knife|chef\S*|mosquitto_\w+)": r"-P\s*",
    r"(?:dbus-send|gdbus|busctl)": r"string:",
    r"(?:keytool|jarsigner)": r"-(?:store|key)pass\s+",
    r"(?:doctl)": r"-t\s+",
    r"(?:rails)": r"--key\s+",
    r"(?:curl)": r"(?:--cookie|-b)\s+",
    r"(?:gh)": r"--body\s+",
    r"(?:aws)": r"(?:--secret-string\s+|aws_secret_access_key\s+)",
}
_TAKES = [
    re.compile(rf"((?:^|[\s/;&|('\"])(?:{program})\b(?:[^\n;|]*?)\s{option})({_WORD})")
    for program, option in _PROGRAMS.items()
]
_TAKEN_LAST = (
    r"cargo login|vault login|snyk auth|jwt decode|wpa_passphrase \S+|htpasswd (?:-\S+ )+\S+ \S+"
    r"|htpasswd -\w*n\w*(?: -\S+)* \S+|rclone obscure|ansible-vault encrypt_string(?: -\S+)*|keyctl (?:add|padd) \S+ \S+"
    r"|git config(?: -\S+)* \S*(?:password|token|secret|auth)\S*"
    r"|bw unlock|AUTH|mkpasswd|net user \S+|htdigest(?: -\S+)* \S+ \S+ \S+|ConvertTo-SecureString"
    r"|consul kv put \S*pass\S*|mc alias set \S+ \S+ \S+|net use \S+ \S+"
)
_LAST = re.compile(rf"((?:^|[\s;&|'\"])(?:{_TAKEN_LAST})\s+)({_WORD})")
_LOGINS = (
    re.compile(r"((?:^|\s)sftp\s+(?:-\S+\s+)*[^\s:@/]+:)([^\s@]+)(?=@)"),
    re.compile(rf"((?:^|\s)(?:-u|--user|--proxy-user|-U|-a|--auth)\s*'?\"?[^\s:,]{{1,80}}[:,])({_WORD})"),
    re.compile(rf"((?:^|\s)-U\s+[^\s%]{{1,80}}%)({_WORD})"),
    re.compile(r"((?:^|\s)sqlplus\s+[^\s/]+/)([^\s@]+)"),
    re.compile(r"([a-z][a-z0-9+.-]{0,30}://[^\s/:@]*:)([^\s/]+)(?=@)"),
    re.compile(r"((?:^|\s)\S*:_auth\w*(?:=|\s+))(\S+)"),
)
_STORED = re.compile(r"(?:^|\s)(?:vault (?:kv )?(?:put|write|patch)|config:set)\s[^\n;|]*")
_STORED_VALUE = re.compile(rf"(=)({_WORD})")


def _shown(word: str) -> str:
    """Quote one word only where its end would be ambiguous. The result is for reading, not for execution."""
    if word and not _NEEDS_QUOTES.search(word):
        return word
    return f'"{word}"' if "'" in word and '"' not in word else shlex.quote(word)


def _is_key(run: str) -> bool:
    """True for base64 with slashes in it, which looks like a path until its letters are counted."""
    has_all = any(map(str.isupper, run)) and any(map(str.islower, run)) and any(map(str.isdigit, run))
    return has_all and is_random(run.replace("/", ""))


def command_preview(command: str | Sequence[str]) -> str:
    """The command line with its secrets masked, cut after so many characters."""
    text = command if isinstance(command, str) else " ".join(map(_shown, command))
    text = text[: MAX_PREVIEW * 8]
    if _PLAIN_LINE.match(text) and not _SUSPECT.search(text) and not MAYBE_ODD.search(text) and not looks_secret(text):
        return text[:MAX_PREVIEW]
    text = _HERE_DOCUMENT.sub(lambda found: f"{found[1]} {MASK}", text) if "<<" in text and "<<<" not in text else text
    text = without_code(text)
    text = _HERE_STRING.sub(rf"\1{MASK}", text)
    text = _STORED.sub(lambda found: _STORED_VALUE.sub(rf"\1{MASK}", found[0]), text)
    text = _PIPED.sub(rf"\1{MASK}\3", text)
    for pattern in (*_TAKES, *_LOGINS, _LAST, _FOLLOWS):
        text = pattern.sub(rf"\1{MASK}", text)
    text = _BASE64.sub(lambda found: MASK if _is_key(found[0]) else found[0], text)
    text = " ".join(without_odd_words(masked(text)).split())
    return text if len(text) <= MAX_PREVIEW else text[: MAX_PREVIEW - 1] + "…"


# Masks what no rule about a program covers: each part of a command line that looks like no ordinary word. A list of
# programs that take a password is never complete, so this looks at spelling alone. A secret that is a plain word is
# not seen.

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

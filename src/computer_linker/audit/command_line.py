"""A command line as the history keeps it: readable, with what looks like a secret masked, and bounded.

`masks.py` recognises a credential by its form. A command line adds: which word is an option's value, which option of which
program takes a password, and what is piped to a program that reads one.
"""

import re
import shlex
from collections.abc import Sequence

from computer_linker.audit.command_words import MAYBE_ODD, without_code, without_odd_words
from computer_linker.audit.masks import MASK, is_random, looks_secret, masked

MAX_PREVIEW = 300
_NEEDS_QUOTES = re.compile(r"[\s'\"]")
_PLAIN_LINE = re.compile(r"[A-Za-z0-9._/ -]*\Z")
_SUSPECT = re.compile(
    r"(?i)pass|pwd|secret|token|key|auth|login|cred|sig|pin|otp| -[a-z]*[puwaxt]|sqlplus|net use|wpa|consul|jwt| mc "
    r"|openssl|keygen|obscure|vault|dbus|expect|knife| -[a-z]*[cekn] |config:set|unlock|_pw"
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
_OPTION = r"(?:pass(?:word|wd|phrase|in|out)?|pwd|secret|token|api-?key|access-?key|private-?key|hmac|credential)s?"
_FOLLOWS = re.compile(
    rf"(?i)((?:^|\s)(?:-{{1,2}}[\w.-]*{_OPTION}(?:[_-]?\w+)?|password|pypi-token\.\w+)(?:=|\s+|\s+pass:|=pass:))({_WORD})"
)
_PROGRAMS = {
    r"(?:mysql\w*|mariadb\w*)": r"-p",
    r"(?:7z\w*|rar|unrar)": r"-p",
    r"(?:docker login|podman login|az|twine|ncftpput|sshpass)": r"-p\s+",
    r"(?:zip|unzip|sqlcmd|isql|bcp|ipmitool)": r"-P\s*",
    r"(?:redis-cli)": r"-a\s+",
    r"(?:ldapsearch|ldapadd|ldapmodify)": r"-w\s+",
    r"(?:snmp\w+)": r"-A\s+",
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
    r"|bw unlock|AUTH|(?:user|owner|input)_pw"
    r"|consul kv put \S*pass\S*|mc alias set \S+ \S+ \S+|net use \S+ \S+"
)
_LAST = re.compile(rf"((?:^|[\s;&|'\"])(?:{_TAKEN_LAST})\s+)({_WORD})")
_LOGINS = (
    re.compile(rf"((?:^|\s)(?:-u|--user|-a|--auth)\s*'?\"?[^\s:,]{{1,80}}[:,])({_WORD})"),
    re.compile(rf"((?:^|\s)-U\s+[^\s%]{{1,80}}%)({_WORD})"),
    re.compile(r"((?:^|\s)sqlplus\s+[^\s/]+/)([^\s@]+)"),
    re.compile(r"([a-z][a-z0-9+.-]{0,30}://[^\s/:@]*:)([^\s/]+)(?=@)"),
    re.compile(r"((?:^|\s)\S*:_auth\w*(?:=|\s+))(\S+)"),
)
_STORED = re.compile(r"(?:^|\s)(?:vault (?:kv )?(?:put|write|patch)|config:set)\s[^\n;|]*")
_STORED_VALUE = re.compile(rf"(=)({_WORD})")


def _shown(word: str) -> str:
    """Quote one word only where its end would be ambiguous. The result is for reading, not for execution."""
    return word if word and not _NEEDS_QUOTES.search(word) else shlex.quote(word)


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

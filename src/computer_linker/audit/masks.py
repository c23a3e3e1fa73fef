"""Credential patterns, and the masking of text by them.

This is the second line of defence. The first is the allow list of what is kept at all (redact.py).
"""

import re
import unicodedata
from functools import cache
from itertools import product
from operator import add
from string import ascii_letters, ascii_lowercase, digits
from urllib.parse import unquote

MASK = "[masked]"

_NAMES = (
    r"pass(?:word|wd|phrase|code)?|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|signing[_-]?key"
    r"|account[_-]?key|encryption[_-]?key|credentials?|auth(?:orization)?|cookie|session[_-]?id|signature|sig"
    r"|client[_-]?secret|bearer|jwt|otp|pin|dsn|connection[_-]?string|webhook|seed|mnemonic|key|sas"
)
# A value ends with its quotes, its word or its line.
_VALUE = r"(?:\\*\"(?:[^\"\\]|\\[^\"])*\\*\"?|'[^']*'?|[^\s\"'&;,]+)"
_NAMED = re.compile(
    rf"(?i)((?:pass(?:word|wd|phrase)|secret|token|(?:^|[^A-Za-z])(?:{_NAMES}))"
    rf"(?:[_-]?[A-Za-z0-9]{{0,12}})?[\"'`\\]*\s*(?:=>?|:=?|\bis\b)\s*)({_VALUE})"
)
_ELEMENT = re.compile(rf"(?i)(<(?:{_NAMES})[^>]{{0,80}}>)([^<]*)")
_LOGIN = re.compile(r"((?:^|\s)(?:-u|--user)[= ]?[^\s:]{1,80}:)(\S+)")
_SHORT = re.compile(r"\b((?:mysql|mysqldump|mariadb|sshpass|psql|redis-cli|smbclient)\b[^\n]{0,200}?\s-[pa]\s?)(\S+)")
_CAMEL = re.compile(rf"([a-z](?:Password|Secret|Token|ApiKey|AccessKey|Key|Credential)s?[\"'`\\]*\s*[=:]\s*)({_VALUE})")
_FLAG = re.compile(rf"(?i)((?:^|\s)--?(?:[a-z0-9]{{1,20}}-){{0,3}}(?:{_NAMES})(?:[= ]\s*|\"?,\s*))({_VALUE})")
_HEADER = re.compile(
    r"(?i)\b((?:proxy-)?authorization|(?:set-)?cookie|x-[a-z-]{0,40}(?:key|token|auth|secret)[a-z-]{0,40})(\s*:\s*)([^\r\n]+)"
)
_SCHEME = re.compile(r"(?i)\b(bearer|basic|digest|negotiate|token|apikey)(\s+)([A-Za-z0-9._~+/=:-]{6,})")
_URL_LOGIN = re.compile(r"(?i)([a-z][a-z0-9+.-]{0,30}:/{1,2})([^\s/@]+@)")
_PEM = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}-----.*?(?:-----END [A-Z0-9 ]{0,40}-----|\Z)", re.DOTALL)

_KNOWN = re.compile(
    r"""(?<![A-Za-z0-9])(?:
      gh[opsur]_[A-Za-z0-9_]{4,} | github_pat_[A-Za-z0-9_]{4,} | glpat-[\w-]{4,} | gl[a-z]{2,6}-[\w-]{16,}
    | (?:AKIA|ASIA|AROA|AIDA|AGPA|ANPA|ABIA|ACCA)[A-Z0-9]{4,} | xox[a-z]-[\w-]{4,} | xapp-[\w-]{4,}
    | eyJ[\w-]{5,}(?:\.[\w-]*){1,4} | sk-[\w-]{4,} | (?:sk|rk|pk|whsec)_(?:live|test)?_?[A-Za-z0-9]{8,}
    | AIza[\w-]{8,} | ya29\.[\w-]{8,} | GOCSPX-[\w-]{4,} | npm_[A-Za-z0-9]{8,} | pypi-[\w-]{8,}
    | SG\.[\w-]{4,}\.[\w-]{4,} | hf_[A-Za-z0-9]{8,} | do[opr]_v1_[a-f0-9]{8,} | dckr_pat_[\w-]{8,}
    | shp(?:at|ca|pa|ss)_[A-Za-z0-9]{8,} | sq0[a-z]{3}-[\w-]{8,} | EAA[A-Za-z0-9]{16,} | key-[a-f0-9]{16,}
    | [0-9a-f]{16,}-us\d{1,2} | tskey-[\w-]{8,} | \d{8,11}:[\w-]{20,} | AGE-SECRET-KEY-[A-Z0-9]{8,}
    | hvs\.[\w-]{8,} | [sbr]\.[A-Za-z0-9]{24} | lin_api_\w{8,} | sntry[a-z]_[\w.-]{8,} | PMAK-[\w-]{8,}
    | nfp_\w{8,} | vercel_\w{8,} | xai-\w{8,} | gsk_\w{8,} | r8_\w{8,} | pat[A-Za-z0-9]{14}\.\w+
    | [MNO][A-Za-z\d]{22,}\.[\w-]{6}\.[\w-]{25,} | https://hooks\.slack\.com/\S+ | AccountKey=\S+
    )""",
    re.VERBOSE,
)
_LONG = re.compile(r"[A-Za-z0-9+=_-]{16,}")
_PLAIN = re.compile(r"[A-Za-z0-9._/-]*\Z")
_UUID_OR_HEX = re.compile(r"(?i)(?=.*[0-9])(?:[0-9a-f]{16,}|[0-9a-f]{8}-[0-9a-f]{4}-.*)\Z")

# Frequency of each letter pair in ordinary words, from `aa` to `zz`, on a scale of 0 to 9 (logarithmic).
_PAIRS = (
    "377745737258783728896555626554623365274364256461025382557437617754842758632240"
    "744685338236447416656432408589776452477957599856675362446741801633731655622040"
    "523383456015465406645321237133731260244372054541103276877671334879863788262506"
    "400141003030004201204000105133733260152433135331402084569433804744852466642172"
    "863583137135547703655110408478868473654675348866324156774553525779670877766433"
    "834484346037347637675230601101000000020100232160100084669562815576851777654261"
    "637484478256546734797442628465953791465576187664537366556550602768460777321201"
    "731082316011324302221421116244631460131552155311330143535412500331350346122341"
    "3343542240044536145523303341206001500121410111100011"
)
WORDLIKE = 5.5
"""A run whose mean pair weight is lower is no word: file names stay above, keys and digests below."""


def masked(text: str) -> str:
    """Return the text with everything shaped like a credential replaced."""
    text = _without_invisible(text)
    text = _PEM.sub(MASK, text)
    text = _HEADER.sub(rf"\1\2{MASK}", text)
    text = _SCHEME.sub(rf"\1\2{MASK}", text)
    text = _URL_LOGIN.sub(rf"\1{MASK}@", text)
    text = _KNOWN.sub(MASK, text)
    text = _NAMED.sub(rf"\1{MASK}", text)
    text = _CAMEL.sub(rf"\1{MASK}", text)
    for pattern in (_FLAG, _ELEMENT, _LOGIN, _SHORT):
        text = pattern.sub(rf"\1{MASK}", text)
    return _LONG.sub(lambda match: MASK if is_random(match[0]) else match[0], text)


def looks_secret(text: str) -> bool:
    """Return True when any part of the text is shaped like a credential."""
    if _PLAIN.match(text):
        # No name with a value, no header, no address can be written in these characters.
        return _KNOWN.search(text) is not None or any(map(is_random, _LONG.findall(text)))
    if masked(text) != text:
        return True
    # Quotes inside a word and percent signs can hide a credential from a pattern.
    plain = unquote(text.replace("'", "").replace('"', ""))
    return plain != text and masked(plain) != plain


def is_random(run: str, wordlike: float = WORDLIKE) -> bool:
    """Return True for a long run of letters and digits that is not made of words: keys, digests, base64."""
    if len(run) < 16:
        return False
    if run.isdigit() or _UUID_OR_HEX.match(run):
        return True
    weights = [weight for weight in map(_weights().get, map(add, run, run[1:])) if weight is not None]
    return len(weights) >= 8 and sum(weights) < wordlike * len(weights)


@cache
def _weights() -> dict[str, int]:
    """The weight of each pair of letters and digits; two digits, or a sign, are neutral."""
    weights = {a + b: 1 for a, b in (*product(ascii_letters, digits), *product(digits, ascii_letters))}
    for (a, b), weight in zip(product(ascii_lowercase, repeat=2), map(int, _PAIRS), strict=True):
        weights[a + b] = weights[a.upper() + b] = weights[a.upper() + b.upper()] = weight
        weights[a + b.upper()] = 4
    return weights


def _without_invisible(text: str) -> str:
    if text.isascii():
        return text
    return "".join(char for char in text if unicodedata.category(char) != "Cf")

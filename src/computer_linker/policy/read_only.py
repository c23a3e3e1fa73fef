"""Ordinary programs that only read: they run inside a kernel boundary without a rule of the scope.

A program is listed with the arguments that keep it reading. Where an option makes it write or start another program, only the
options named here are taken, whole: abbreviations and anything unknown need a rule of the owner.
"""

import re
from collections.abc import Callable

from computer_linker.policy.shell_line import Unknown, Word, Words

PLAIN = frozenset(
    """
    ls cat head tail wc cut tr nl tac rev fold paste join comm cmp basename dirname realpath readlink stat du df od
    md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum seq sleep echo printf true false test [ pwd uname
    which expand unexpand numfmt nproc arch tsort base64 grep egrep fgrep jq
    """.split()
)
"""They have no option that writes a file or starts a program."""

_FIND = frozenset(
    """
    -H -L -P -mindepth -maxdepth -depth -d -xdev -mount -follow -daystart -name -iname -path -ipath -wholename -iwholename
    -regex -iregex -regextype -lname -ilname -type -xtype -size -empty -perm -readable -writable -executable -user -group -uid
    -gid -nouser -nogroup -links -inum -samefile -newer -anewer -cnewer -mtime -mmin -atime -amin -ctime -cmin -used -fstype
    -newermt -newerat -newerct -prune -quit -true -false -print -print0 -printf -ls -not -and -or -a -o ( ) ! ,
    """.split()
)
_LONG: dict[str, frozenset[str]] = {
    "sort": frozenset(
        """
        --reverse --numeric-sort --general-numeric-sort --human-numeric-sort --version-sort --unique --stable --ignore-case
        --ignore-leading-blanks --dictionary-order --month-sort --zero-terminated --key --field-separator --check --merge --sort
        """.split()
    ),
    "uniq": frozenset("--count --repeated --all-repeated --unique --ignore-case --skip-fields --skip-chars".split()),
    "diff": frozenset(
        """
        --unified --context --brief --recursive --new-file --ignore-all-space --ignore-space-change --ignore-blank-lines
        --ignore-case --text --side-by-side --width --color --label --exclude --minimal --report-identical-files
        --strip-trailing-cr --suppress-common-lines --no-dereference --normal --ignore-trailing-space --ignore-matching-lines
        """.split()
    ),
    "tree": frozenset("--noreport --dirsfirst --gitignore --du --prune --charset --filelimit --sort".split()),
    "file": frozenset("--brief --mime --mime-type --mime-encoding --dereference --no-dereference".split()),
    "date": frozenset("--utc --universal --iso-8601 --rfc-3339 --rfc-email --date --reference".split()),
}
_SHORT = {
    "sort": "bdfghiMnRrVutkszcCm0123456789.,",
    "uniq": "cdDuiwzfs0123456789",
    "diff": "uUcCqrNwbBiatydsEZWxIF0123456789",
    "tree": "adfilshLIPDugpQNCFqvtrcxJ0123456789",
    "file": "bikLhnNrs0",
    "date": "uIRdr",
}
_MOST_OPERANDS = {"uniq": 1}
"""A second file of `uniq` is its output."""


def _pattern(end: str) -> str:
    """A regular expression of sed up to its delimiter, which is no end of it inside brackets and so may not be there."""
    item = rf"(?:\[:[a-z]+:\]|(?!{end})[^]^[\\\n])"
    return rf"(?:(?!{end})[^][\\\n]|\\[^\n]|\[\^?{item}+\])*{end}"


_ADDRESS = rf"(?:\d+|\$|/{_pattern('/')})"
_SED_STEP = re.compile(
    rf"\s*(?:{_ADDRESS}(?:,(?:{_ADDRESS}|[+~]\d+))?)?\s*!?\s*"
    r"(?:[pdq=]|s([/|#,@])" + _pattern(r"\1") + r"(?:(?!\1)[^\\\n]|\\[^\n])*\1[gpIi\d]*)\s*"
)


def is_read_only(words: Words) -> bool:
    """True for a listed program whose arguments keep it reading, as far as they can be read."""
    name, arguments = words[0], words[1:]
    if not isinstance(name, str) or len(arguments) > 4096:
        return False
    if name in PLAIN:
        return True
    check = _CHECKS.get(name)
    return check is not None and check(arguments)


def _find(arguments: Words) -> bool:
    for word in arguments:
        if isinstance(word, Unknown):
            if word.is_option:
                return False
        elif (word[:1] == "-" or word in ("(", ")", "!", ",")) and word not in _FIND and not _is_number(word):
            return False
    return True


def _is_number(word: str) -> bool:
    """An argument of a test, such as the `-7` of `-mtime -7` or the `-100k` of `-size -100k`."""
    return re.fullmatch(r"-\d+[cwbkMG]?", word) is not None


def _rg(arguments: Words) -> bool:
    for word in arguments:
        if isinstance(word, Unknown):
            if word.is_option:
                return False
        elif word == "--":
            return True
        elif word.startswith(("--pre", "--hostname-bin", "--search-zip", "--config")) or re.match(r"-[^-]*z", word):
            return False
    return True


def _sed(arguments: Words) -> bool:
    """`sed` with simple scripts only: print, delete, quit, line number and substitute without its flags `e` and `w`."""
    scripts: list[Word] = []
    has_script, at, is_over = False, 0, False
    while at < len(arguments):
        word = arguments[at]
        at += 1
        if isinstance(word, Unknown):
            if word.is_option or not has_script:
                return False
        elif word == "--" and not is_over:
            is_over = True
        elif word in ("-e", "--expression") and not is_over and at < len(arguments):
            scripts.append(arguments[at])
            at, has_script = at + 1, True
        elif word.startswith("-") and word != "-" and not is_over:
            if word not in ("-n", "-E", "-r", "-nE", "-En", "-nr", "-s", "-z", "-u", "--quiet", "--silent"):
                return False
        elif not has_script:
            scripts.append(word)
            has_script = True
    return bool(scripts) and all(isinstance(script, str) and _is_simple(script) for script in scripts)


def _is_simple(script: str) -> bool:
    """Steps joined by `;`, each of a simple form; a `;` inside a pattern is read as part of it."""
    at = 0
    if len(script) > 2000:
        return False
    while True:
        found = _SED_STEP.match(script, at)
        if found is None:
            return False
        at = found.end()
        if at == len(script):
            return True
        if script[at] not in ";\n":
            return False
        at += 1


def _by_options(name: str) -> Callable[[Words], bool]:
    long, short = _LONG[name], _SHORT[name]

    def check(arguments: Words) -> bool:
        operands, is_over = 0, False
        for word in arguments:
            if isinstance(word, Unknown):
                if word.is_option or (word.many and name in _MOST_OPERANDS):
                    return False
                operands += 1
            elif is_over or not word.startswith("-") or word == "-":
                operands += 1
            elif word == "--":
                is_over = True
            elif word.startswith("--"):
                if word.partition("=")[0] not in long:
                    return False
            elif not _fits_short(name, word[1:], short):
                return False
        return operands <= _MOST_OPERANDS.get(name, 4096)

    return check


def _fits_short(name: str, letters: str, known: str) -> bool:
    """A cluster of short options; `-t` and `-k` of sort may carry their value."""
    if name == "sort" and letters[:1] in ("t", "k") and "o" not in letters:
        return True
    return all(letter in known for letter in letters)


_CHECKS: dict[str, Callable[[Words], bool]] = {
    "find": _find,
    "rg": _rg,
    "sed": _sed,
    **{name: _by_options(name) for name in _LONG},
}
READ_ONLY = frozenset((*PLAIN, *_CHECKS))

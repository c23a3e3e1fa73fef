"""Options in front of a subcommand, as far as a denied rule has to look behind them."""

import re
from collections.abc import Iterator

from computer_linker.policy.command_line import ASSIGNMENT
from computer_linker.policy.shell_line import Unknown, Word, Words

_GIT_PLAIN = frozenset(
    """
    -v --version -h --help -p --paginate -P --no-pager --html-path --man-path --info-path --no-replace-objects --bare --no-advice
    --no-lazy-fetch --no-optional-locks --literal-pathspecs --glob-pathspecs --noglob-pathspecs --icase-pathspecs
    """.split()
)
_GIT_VALUED = frozenset("-C -c --git-dir --work-tree --namespace --super-prefix --config-env --attr-source".split())
"""Git's own options without and with a value. Of any other option, and of any other program's, both are assumed: npm, for
one, takes or leaves the next argument by what it looks like."""

GIT_COMMANDS = frozenset(
    """
    add am annotate apply archive bisect blame branch bundle cat-file check-attr check-ignore check-mailmap check-ref-format
    checkout checkout-index cherry cherry-pick clean clone column commit commit-graph commit-tree config count-objects
    credential describe diff diff-files diff-index diff-tree difftool fast-export fast-import fetch fetch-pack fmt-merge-msg
    for-each-ref format-patch fsck gc get-tar-commit-id grep hash-object help index-pack init init-db interpret-trailers log
    ls-files ls-remote ls-tree mailinfo mailsplit maintenance merge merge-base merge-file merge-index merge-tree mergetool mktag
    mktree multi-pack-index mv name-rev notes pack-objects pack-refs patch-id prune prune-packed pull push range-diff read-tree
    rebase receive-pack reflog remote repack replace request-pull rerere reset restore rev-list rev-parse revert rm shortlog show
    show-branch show-index show-ref sparse-checkout stage stash status stripspace submodule switch symbolic-ref tag unpack-file
    unpack-objects update-index update-ref update-server-info upload-archive upload-pack var verify-commit verify-pack verify-tag
    version worktree write-tree
    """.split()
)
"""Commands of git 2.30 and later that no alias replaces, without those that do another's work (send-pack, for-each-repo)."""


def behind_option(program: str, word: Word, *, is_first: bool) -> Iterator[bool]:
    """Nothing for an argument; for an option, each of True and False that may hold: the next argument is its value."""
    if isinstance(word, Unknown):
        if word.is_option:
            yield from (False, True)
        return
    if not word.startswith(("-", "+")):
        if program == "make" and ASSIGNMENT.match(word):
            yield False
        return
    is_gits = program == "git" and is_first
    if not (is_gits and word in _GIT_VALUED):
        yield False
    if not (is_gits and word in _GIT_PLAIN) and "=" not in word and not word.startswith("+"):
        yield True


def foreign_to_git(arguments: Words) -> str | None:
    """The subcommand, where it is none of git's own and so may be an alias of any other; None where it is, or there is none."""
    reached = {0}
    for at, word in enumerate(arguments):
        if at not in reached:
            continue
        after = list(behind_option("git", word, is_first=True))
        value = arguments[at + 1] if True in after and at + 1 < len(arguments) else ""
        if isinstance(word, Unknown) or (isinstance(value, Unknown) and value.many):
            return "what cannot be read here"
        if not after and word not in GIT_COMMANDS:
            return word
        reached |= {at + 2 if has_value else at + 1 for has_value in after}
    return None


def is_meant(program: str, glob: str, given: str) -> bool:
    """True where the program takes the beginning of a subcommand for the whole."""
    return program == "npm" and bool(given) and glob.startswith(given)


_FETCHES = frozenset(["", *"install i in isntall add a get download wheel update upgrade up ci link create".split()])
"""Verbs of a package manager with what it fetches behind them, and often runs; and none, as any of them may follow."""
_CHOOSES: dict[str, frozenset[str]] = {
    "git": frozenset(
        """
        bisect branch bundle checkout config difftool maintenance mergetool notes reflog remote replace rerere reset restore
        sparse-checkout stash submodule switch tag worktree
        """.split()
    ),
    "npm": frozenset("run run-script rum urn exec x config pkg cache".split()) | _FETCHES,
    "pnpm": frozenset("run exec dlx config".split()) | _FETCHES,
    "yarn": frozenset("run exec dlx config workspace workspaces".split()) | _FETCHES,
    "bun": frozenset("run x pm".split()) | _FETCHES,
    "deno": frozenset("run task eval".split()) | _FETCHES,
    "uv": frozenset("run tool pip python".split()) | _FETCHES,
    "poetry": _FETCHES | {"run"},
    "pdm": _FETCHES | {"run"},
    "hatch": frozenset({"run", "env"}),
    "rye": _FETCHES | {"run"},
    "pip": _FETCHES,
    "pipx": _FETCHES | {"run"},
    "conda": _FETCHES | {"run"},
    "mamba": _FETCHES | {"run"},
    "gem": _FETCHES | {"exec"},
    "bundle": _FETCHES | {"exec"},
    "cargo": _FETCHES,
    "go": _FETCHES | {"run", "tool"},
    "dotnet": frozenset({"run", "tool", "exec"}),
    "docker": frozenset("run exec compose container image volume network system buildx builder".split()),
    "podman": frozenset("run exec compose container image volume network system build machine".split()),
    "kubectl": frozenset("exec run config".split()),
}
_EACH_WORD = frozenset("make gmake just ninja rake task invoke gradle gradlew mvn ant tox nox".split())
"""Programs that carry out each of their arguments: `make test install`."""

_GIT_SHOWING = frozenset("status log diff show blame shortlog ls-files ls-tree rev-parse describe".split())
_GIT_SHOWS = re.compile(
    r"-\d+|-[bnpsuw]|--(?:all|branch|cached|color|decorate|follow|graph|merges|name-only|name-status|no-color|no-decorate|no-merges"
    r"|no-patch|no-pager|numstat|oneline|patch|porcelain|reverse|short|shortstat|staged|stat|summary|tags|word-diff"
    r"|(?:after|author|before|format|grep|max-count|pretty|since|until|unified)=.*)"
)
"""Options that only choose what git shows; others write files (`--output`) or start programs (`--ext-diff`)."""


def is_showing(program: str, verb: str) -> bool:
    """True for a command of git that shows something."""
    return program == "git" and verb in _GIT_SHOWING


def only_shows(program: str, verb: str, option: str) -> bool:
    """True for an option that only chooses what such a command shows."""
    return is_showing(program, verb) and _GIT_SHOWS.fullmatch(option) is not None


def chooses_later(program: str, verb: str) -> bool:
    """True where the arguments after this one choose what is done or started: `git stash drop`, `npm run deploy`, `uv run sh`."""
    return program in _EACH_WORD or verb in _CHOOSES.get(program, ())


def is_option(word: str) -> bool:
    """True for an argument that can change what a program does: an option, an assignment, a file of options."""
    return word.startswith(("-", "+", "@")) or ASSIGNMENT.match(word) is not None

"""Options in front of a subcommand, as far as a denied rule has to look behind them."""

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

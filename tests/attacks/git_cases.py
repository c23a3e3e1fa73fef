"""Attacks through git: options in values, pathspecs, settings of the repository, repositories that are elsewhere."""

import json
from collections.abc import Callable
from typing import Any

from attacks.case import Case
from attacks.ground import CANARY, Answer, Field, Ground
from support.repositories import git


def _with(**settings: str) -> Callable[[Ground], object]:
    return lambda ground: ground.repository(None, **settings)


def _setting(name: str, op: str, key: str, value: str = "$ROOT/x.sh", given: Any = None, **more: str) -> Case:
    def setup(ground: Ground) -> None:
        ground.repository(None, **{key: value, **more})
        (ground.root / ".gitattributes").write_text("*.txt filter=y diff=y merge=y\n")
        for hook in ("pre-commit", "commit-msg", "post-commit", "post-index-change", "prepare-commit-msg"):
            ground.script(ground.root / "hooks").rename(ground.root / "hooks" / hook)
        git(ground.root, "-c", "filter.y.clean=", "-c", "filter.y.process=", "-c", "core.fsmonitor=", "add", "a.txt")
        ground.mark.unlink(missing_ok=True)
        (ground.root / "a.txt").write_text("three\n")

    return Case(name, "app", op, ".", given, setup=setup, absent=["$MARK"], hides=[CANARY])


def _above(ground: Ground) -> None:
    ground.repository(ground.repo)
    top = ground.repo / "topsecret.txt"
    top.write_text("plain\n")
    (ground.repo / "sub" / "x.txt").write_text("x\n")
    git(ground.repo, "add", ".")
    git(ground.repo, "commit", "-qm", "second")
    top.write_text(f"{CANARY}\n")


def _above_committed(ground: Ground) -> None:
    _above(ground)
    git(ground.repo, "commit", "-qam", "third")


def _borrowed_objects(ground: Ground) -> None:
    ground.repository()
    other = ground.out / "repo"
    other.mkdir()
    ground.repository(other)
    git(other, "commit", "-qam", CANARY)
    (ground.root / ".git" / "objects" / "info").mkdir(exist_ok=True)
    (ground.root / ".git" / "objects" / "info" / "alternates").write_text(f"{other}/.git/objects\n")


def _elsewhere(ground: Ground) -> None:
    ground.repository()
    other = ground.out / "repo"
    other.mkdir()
    ground.repository(other)
    (other / CANARY).write_text("")


def _message_is_literal(field: Field, answer: Answer) -> None:
    assert git(field.ground.root, "log", "-1", "--format=%s") == "--amend"
    assert git(field.ground.root, "rev-list", "--count", "HEAD") == "2"


def _staged(ground: Ground) -> None:
    ground.repository()
    git(ground.root, "add", "a.txt")


def _asks_the_borrowed_commit(field: Field, answer: Answer) -> None:
    """The commit's name is only known once it is made."""
    ref = git(field.ground.out / "repo", "rev-parse", "HEAD")
    asked = field.call("app", "git.show", ".", input={"ref": ref})
    assert CANARY not in asked.text, asked.text


def _no_host_names(field: Field, answer: Answer) -> None:
    assert "etc/passwd" not in json.dumps(answer.envelope)


def _above_case(name: str, op: str, given: Any, setup: Callable[[Ground], None] = _above) -> Case:
    return Case(name, "gitsub", op, ".", given, setup=setup, hides=[CANARY, "root:x:0"])


GIT_CASES = [
    Case("GIT-003", "app", "git.diff", ".", {"paths": ["/dev/null", "/etc/passwd"]}, {"base": "--no-index"}, ok=False,
         codes=["invalid_request", "path_out_of_scope"], hides=["root:x:0:0"], setup=_with()),
    Case("GIT-007", "app", "git.diff", ".", None, {"contextLines": "3 --output=x"}, ok=False, codes=["invalid_request"],
         setup=_with(), absent=["$ROOT/x"]),
    _above_case("GIT-009", "git.diff", {"paths": [":(top)topsecret.txt"]}),
    _above_case("GIT-014", "git.diff", {"paths": ["--pathspec-from-file=/etc/passwd"]}),
    _above_case("GIT-016", "git.show", {"ref": "HEAD"}, _above_committed),
    _setting("GIT-025", "git.diff", "diff__external"),
    _setting("GIT-025-textconv", "git.diff", "diff__y__textconv"),
    _setting("GIT-025-command", "git.diff", "diff__y__command"),
    _setting("GIT-025-fsmonitor", "git.status", "core__fsmonitor"),
    _setting("GIT-025-clean", "git.status", "filter__y__clean"),
    _setting("GIT-025-smudge", "git.worktree_create", "filter__y__smudge", given={"path": "wt", "branch": "w"}),
    _setting("GIT-029", "git.stage", "filter__y__process", given={"paths": ["a.txt"]}),
    _setting("GIT-030", "git.commit", "core__hooksPath", "$ROOT/hooks", {"message": "m"}),
    _setting("GIT-032", "git.commit", "core__editor", given={"message": "m"}),
    _setting("GIT-033", "git.commit", "gpg__program", given={"message": "m"}, commit__gpgsign="true"),
    _setting("GIT-033-ssh", "git.commit", "gpg__ssh__program", given={"message": "m"}, commit__gpgsign="true", gpg__format="ssh",
             user__signingkey="$ROOT/a.txt"),
    _setting("GIT-033-show", "git.show", "gpg__program", given={"ref": "HEAD"}, log__showSignature="true"),
    _setting("GIT-035", "git.status", "core__sshCommand"),
    _setting("GIT-036", "git.status", "credential__helper", "!$ROOT/x.sh"),
    _setting("GIT-036-pager", "git.log", "core__pager", pager__log="$ROOT/x.sh"),
    _setting("GIT-036-askpass", "git.log", "core__askPass"),
    _setting("GIT-039", "git.status", "submodule__s__update", "!$ROOT/x.sh"),
    _setting("GIT-040", "git.diff", "interactive__diffFilter"),
    _setting("GIT-041", "git.log", "uploadpack__packObjectsHook"),
    _setting("GIT-041-merge", "git.status", "merge__y__driver"),
    _setting("GIT-041-trailer", "git.commit", "trailer__x__command", given={"message": "m\n\nx: y"}),
    _setting("GIT-041-include", "git.status", "include__path", "$OUT/secret.txt"),
    _setting("GIT-041-alternates", "git.log", "core__alternateRefsCommand"),
    Case("GIT-048", "app", "git.status", ".", setup=_with(core__worktree="/"), hides=["etc/passwd"], after=_no_host_names),
    Case("GIT-050", "app", "git.log", ".", setup=_borrowed_objects, hides=[CANARY], after=_asks_the_borrowed_commit),
    Case("GIT-053", "app", "git.status", ".", setup=_elsewhere, absent=["$MARK"], hides=[CANARY]),
    Case("GIT-055", "app", "git.commit", ".", {"message": "--amend"}, ok=True, setup=_staged, after=_message_is_literal),
    Case("GIT-061", "app", "git.worktree_create", ".", {"path": "wt", "branch": "--detach"}, ok=False, setup=_with(),
         absent=["$ROOT/wt"]),
]  # fmt: skip

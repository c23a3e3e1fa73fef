"""The git operations along the whole road: right answers, the scope's edge, and bad repositories."""

import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from support.children import children_of_this_process
from support.noise import noise
from support.repositories import git, repository
from support.road import Road, folder_scope

pytestmark = pytest.mark.anyio
CANARY = "CANARY-OUT-7f3a"


@pytest.fixture
async def part(tmp_path: Path) -> AsyncIterator[Road]:
    """A road whose scope is `root/sub`, a sub-folder of a repository with a secret at its top."""
    root = repository(tmp_path / "root")
    (root / "topsecret.txt").write_text("quiet\n")
    (root / "sub" / "x.txt").write_text("x\ny\n")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", f"{CANARY} both")
    (root / "topsecret.txt").write_text(CANARY + "\n")
    git(root, "commit", "-q", "-a", "-m", f"{CANARY} only the top")
    (root / "topsecret.txt").write_text(CANARY + " again\n")
    (root / "sub" / "x.txt").write_text("x\ny\nz\n")
    async with Road.open(tmp_path, [folder_scope(root / "sub")]) as road:
        yield road


async def test_every_operation_works_in_an_ordinary_repository(road: Road) -> None:
    root = repository(road.root)
    (root / "new.txt").write_text("new\n")
    (root / "sub" / "x.txt").unlink()
    status = await road.data("git.status")
    assert status["branch"] == "main" and not status["clean"]
    assert status["entries"] == [
        {"path": "a.txt", "index": ".", "worktree": "M", "renamedFrom": None},
        {"path": "sub/x.txt", "index": ".", "worktree": "D", "renamedFrom": None},
        {"path": "new.txt", "index": "?", "worktree": "?", "renamedFrom": None},
    ]
    staged = await road.call("git.stage", input={"paths": ["a.txt", "new.txt", "sub"]})
    assert staged["effect"] == "confirmed"
    assert staged["data"] == {"staged": ["a.txt", "new.txt", "sub/x.txt"]}
    unstaged = await road.call("git.unstage", input={"paths": ["sub"]})
    assert unstaged["effect"] == "confirmed" and unstaged["data"] == {"staged": ["sub/x.txt"]}
    diff = await road.data("git.diff", options={"staged": True})
    assert "+two" in diff["diff"] and [file["path"] for file in diff["files"]] == ["a.txt", "new.txt"]
    before = git(root, "rev-parse", "HEAD")
    made = await road.call("git.commit", input={"message": "second\n\nwith a body"})
    assert made["effect"] == "confirmed"
    assert made["data"] == {"hash": git(root, "rev-parse", "HEAD"), "files": ["a.txt", "new.txt"], "hooks": False}
    assert git(root, "rev-parse", "HEAD^") == before
    log = await road.data("git.log", options={"limit": 5})
    assert [commit["subject"] for commit in log["commits"]] == ["second", "first"]
    assert [c["subject"] for c in (await road.data("git.log", input={"paths": ["sub"]}))["commits"]] == ["first"]
    shown = await road.data("git.show", input={"ref": "HEAD"})
    assert shown["commit"]["body"] == "with a body" and "+new" in shown["diff"]
    first = await road.data("git.show", input={"ref": "HEAD~1"})
    assert [file["action"] for file in first["files"]] == ["A", "A"]
    created = await road.call("git.worktree_create", input={"path": "wt", "branch": "fix/one"})
    assert created["effect"] == "confirmed"
    assert [tree["path"] for tree in created["data"]["worktrees"]] == [".", "wt"]
    assert (root / "wt" / "a.txt").read_text() == "one\ntwo\n"
    assert (await road.data("git.status", "wt"))["branch"] == "fix/one"
    assert children_of_this_process() == []


async def test_a_folder_scope_below_the_top_sees_only_itself(part: Road) -> None:
    status = await part.data("git.status")
    assert [entry["path"] for entry in status["entries"]] == ["x.txt"]
    diff = await part.data("git.diff")
    assert "+z" in diff["diff"] and [file["path"] for file in diff["files"]] == ["x.txt"]
    since = await part.data("git.diff", options={"base": "HEAD~2"})
    assert CANARY not in str(since) and "+y" in since["diff"]
    log = await part.data("git.log")
    assert [commit["subject"] for commit in log["commits"]] == [f"{CANARY} both", "first"]
    shown = await part.data("git.show", input={"ref": "HEAD~1"})
    assert [file["path"] for file in shown["files"]] == ["x.txt"]
    assert await part.code("git.show", input={"ref": "HEAD"}) == "not_found"


@pytest.mark.parametrize(
    "path",
    [":(top)topsecret.txt", ":/topsecret.txt", ":!x.txt", ":^x.txt", ":(exclude)x.txt", ":(glob)**", ":(icase)TOPSECRET.TXT",
     ":(attr:x)", "--pathspec-from-file=/etc/passwd", "*", "../topsecret.txt", "/etc/passwd", "sub/../../topsecret.txt", ":"],
)  # fmt: skip
async def test_paths_are_plain_names_that_stay_in_the_scope(part: Road, path: str) -> None:
    for op in ("git.diff", "git.log", "git.show", "git.stage", "git.unstage"):
        given = {"paths": [path]} | ({"ref": "HEAD~1"} if op == "git.show" else {})
        envelope = await part.call(op, input=given)
        assert CANARY not in str(envelope).replace(f"{CANARY} both", "")
    assert git(part.root, "diff", "--cached", "--name-only") == ""


async def test_a_part_stages_and_commits_only_itself(part: Road) -> None:
    assert (await part.data("git.stage", input={"paths": ["."]}))["staged"] == ["x.txt"]
    git(part.root, "add", "topsecret.txt")
    before = git(part.root, "rev-parse", "HEAD")
    assert await part.code("git.commit", input={"message": "m"}) == "conflict"
    assert git(part.root, "rev-parse", "HEAD") == before
    assert await part.code("git.worktree_create", input={"path": "wt", "branch": "b"}) == "path_out_of_scope"
    assert not (part.root / "sub" / "wt").exists()


@pytest.mark.parametrize(
    "ref", ["--output=x", "-p", "--no-index", "HEAD:a.txt", ":/first", "HEAD..main", "HEAD...main", "^HEAD", "a b", "HEAD\n",
            "@{-1}", "--format=evil", "main:../x", "\u202e", "$(id)", "HEAD^{/first}"]
)  # fmt: skip
async def test_a_ref_is_one_plain_name(road: Road, ref: str) -> None:
    root = repository(road.root)
    for op, given, options in (
        ("git.show", {"ref": ref}, None),
        ("git.log", None, {"ref": ref}),
        ("git.diff", None, {"base": ref}),
    ):
        assert await road.code(op, input=given, options=options) == "invalid_request"
    assert sorted(path.name for path in root.iterdir()) == [".git", "a.txt", "sub"]


async def test_a_ref_named_like_an_option_is_not_one(road: Road) -> None:
    root = repository(road.root)
    (root / ".git" / "refs" / "heads" / "--output=pwned").write_text(git(root, "rev-parse", "HEAD") + "\n")
    assert (await road.data("git.log"))["commits"]
    assert (await road.call("git.status"))["ok"]
    assert not (root / "pwned").exists()


async def test_an_unknown_ref_is_not_found(road: Road) -> None:
    repository(road.root)
    for ref in ("nope", "deadbeef", "HEAD~99", "refs/heads/nope"):
        assert await road.code("git.show", input={"ref": ref}) == "not_found"


@pytest.mark.parametrize("message", ["--amend", "-m x", "# a comment", "--author=Evil <e@x>", "a\r\nb", "ä\u202e"])
async def test_a_message_is_literal(road: Road, message: str) -> None:
    root = repository(road.root)
    git(root, "add", "a.txt")
    before = git(root, "rev-parse", "HEAD")
    await road.data("git.commit", input={"message": message})
    assert git(root, "rev-parse", "HEAD^") == before
    assert git(root, "log", "-1", "--format=%B").split("\n")[0] == message.split("\n")[0].rstrip()


@pytest.mark.parametrize(
    "branch", ["--detach", "-b", "--force", "a b", "x..y", "x.lock", "x^", "", "HEAD~1", "@{u}", "a//b"]
)
async def test_a_branch_name_is_never_an_option(road: Road, branch: str) -> None:
    repository(road.root)
    assert await road.code("git.worktree_create", input={"path": "wt", "branch": branch}) == "invalid_request"
    assert not (road.root / "wt").exists()


async def test_a_work_tree_stays_in_the_scope(road: Road, tmp_path: Path) -> None:
    root = repository(road.root)
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / "d").symlink_to(outside)
    for path, code in (
        ("d/wt", "path_out_of_scope"),
        ("../wt", "path_out_of_scope"),
        ("/tmp/wt", "path_out_of_scope"),
        (".git/wt", "permission_denied"),
        ("sub", "already_exists"),
        ("none/wt", "not_found"),
    ):
        assert await road.code("git.worktree_create", input={"path": path, "branch": "b"}) == code, path
    assert list(outside.iterdir()) == [] and not (tmp_path / "wt").exists()
    assert git(root, "branch", "--list", "b") == ""


@pytest.mark.parametrize("broken", ["HEAD:a.txt", "HEAD^{tree}", "logs"])
@pytest.mark.parametrize("branch", ["fix/new", "old"])
async def test_a_work_tree_that_could_not_be_made_leaves_nothing(road: Road, branch: str, broken: str) -> None:
    """Found: the folder, the branch and git's note stayed, and the next call answered already_exists."""
    root = repository(road.root)
    git(root, "branch", "old")
    place = root / ".git" / "logs"
    if broken != "logs":
        name = git(root, "rev-parse", broken)
        place = root / ".git" / "objects" / name[:2] / name[2:]
    aside = place.rename(root / "aside")
    if broken == "logs":
        place.write_text("")
    wanted = {"path": "wt", "branch": branch}
    assert not (await road.call("git.worktree_create", input=wanted))["ok"]
    assert not (root / "wt").exists()
    assert git(root, "for-each-ref", "--format=%(refname)") == "refs/heads/main\nrefs/heads/old"
    assert not (root / ".git" / "refs" / "heads" / "fix").exists()
    assert not list((root / ".git").glob("worktrees/*"))
    place.unlink(missing_ok=True)
    aside.rename(place)
    made = await road.data("git.worktree_create", input=wanted)
    assert [tree["path"] for tree in made["worktrees"]] == [".", "wt"]
    assert (root / "wt" / "a.txt").read_text() == "one\n"
    assert git(root / "wt", "status", "--porcelain") == ""


async def test_sensitive_files_are_in_no_diff_and_are_not_staged(road: Road) -> None:
    root = repository(road.root)
    (root / ".env").write_text(f"TOKEN={CANARY}\n")
    assert (await road.data("git.stage", input={"paths": ["."]}))["staged"] == ["a.txt"]
    git(root, "add", "-f", ".env")
    git(root, "commit", "-q", "-m", "with a secret")
    (root / ".env").write_text(f"TOKEN={CANARY}-2\n")
    (root / "a.txt").write_text("three\n")
    for op, given, options in (
        ("git.diff", None, None),
        ("git.diff", None, {"base": "HEAD~1"}),
        ("git.show", {"ref": "HEAD"}, None),
        ("git.status", None, {"includeDiff": True}),
    ):
        data = await road.data(op, input=given, options=options)
        assert CANARY not in str(data) and "a.txt" in str(data)
    assert await road.code("git.diff", input={"paths": [".env"]}) == "permission_denied"
    assert await road.code("git.stage", input={"paths": [".env"]}) == "permission_denied"


async def test_a_repository_that_keeps_its_data_elsewhere_is_refused(road: Road, tmp_path: Path) -> None:
    outside = repository(tmp_path / "outside")
    (outside / "secret.txt").write_text(CANARY)
    git(outside, "add", ".")
    git(outside, "commit", "-q", "-m", CANARY)
    commit = git(outside, "rev-parse", "HEAD")
    root = repository(road.root)
    alternates = root / ".git" / "objects" / "info" / "alternates"
    for line in (str(outside / ".git" / "objects"), "../../../outside/.git/objects"):
        alternates.write_text(line + "\n")
        assert await road.code("git.show", input={"ref": commit}) == "path_out_of_scope"
    alternates.unlink()
    shutil.move(root / ".git" / "objects", tmp_path / "objects")
    (root / ".git" / "objects").symlink_to(tmp_path / "objects")
    assert await road.code("git.status") == "path_out_of_scope"
    shutil.rmtree(root / ".git")
    (root / ".git").symlink_to(outside / ".git")
    assert await road.code("git.log") == "path_out_of_scope"
    (root / ".git").unlink()
    for text in (f"gitdir: {outside}/.git\n", "gitdir: ../outside/.git\n"):
        (root / ".git").write_text(text)
        assert await road.code("git.log") == "path_out_of_scope"


async def test_a_work_tree_setting_does_not_widen_the_view(road: Road) -> None:
    root = repository(road.root)
    git(root, "config", "core.worktree", "/")
    data = await road.data("git.status")
    assert [entry["path"] for entry in data["entries"]] == ["a.txt"]


async def test_odd_names_are_whole(road: Road) -> None:
    root = repository(road.root)
    names = [b"new\nline", b'tab\tq"uote', b"bad\xffbyte", "ünï".encode(), b" lead", b":(top)x", b"-dash", b"a -> b"]
    for name in names:
        Path(os.fsdecode(os.fsencode(root) + b"/" + name)).write_text("x\n")
    shown = sorted(name.decode("utf-8", "backslashreplace") for name in names)
    data = await road.data("git.status")
    assert sorted(entry["path"] for entry in data["entries"] if entry["index"] == "?") == shown
    staged = await road.data("git.stage", input={"paths": ["."]})
    assert sorted(staged["staged"]) == sorted([*shown, "a.txt"])
    diff = await road.data("git.diff", options={"staged": True})
    assert sorted(file["path"] for file in diff["files"]) == sorted([*shown, "a.txt"])


async def test_the_log_follows_the_head_wherever_it_goes(road: Road) -> None:
    root = repository(road.root)

    async def subjects(**parts: object) -> list[str]:
        return [commit["subject"] for commit in (await road.data("git.log", **parts))["commits"]]

    assert await subjects() == ["first"] == await subjects()
    git(root, "commit", "-q", "-a", "-m", "second")
    assert await subjects() == ["second", "first"]
    git(root, "pack-refs", "--all")
    assert await subjects() == ["second", "first"]
    git(root, "checkout", "-q", "-b", "side", "HEAD~1")
    assert await subjects() == ["first"]
    git(root, "commit", "-q", "--amend", "-m", "rewritten")
    assert await subjects() == ["rewritten"]
    git(root, "checkout", "-q", "--detach", "main")
    assert await subjects() == ["second", "first"]
    assert await subjects(input={"paths": ["sub"]}) == ["first"]
    assert await subjects(options={"limit": 1}) == ["second"]
    git(root, "symbolic-ref", "HEAD", "refs/heads/unborn")
    assert await road.code("git.log") == "not_found"


async def test_a_rename_says_where_from(road: Road) -> None:
    root = repository(road.root)
    (root / "long.txt").write_text("a line of text\n" * 20)
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "long")
    git(root, "mv", "long.txt", "other.txt")
    data = await road.data("git.status")
    assert {"path": "other.txt", "index": "R", "worktree": ".", "renamedFrom": "long.txt"} in data["entries"]


async def test_a_detached_head_and_a_branch_without_commits(road: Road) -> None:
    root = repository(road.root)
    git(root, "checkout", "-q", "--detach")
    assert (await road.data("git.status"))["branch"] is None
    shutil.rmtree(root / ".git")
    git(root, "init", "-q", "-b", "main")
    data = await road.data("git.status")
    assert data["branch"] == "main" and data["head"] is None
    assert await road.code("git.log") == "not_found"
    assert await road.code("git.show", input={"ref": "HEAD"}) == "not_found"
    assert (await road.data("git.stage", input={"paths": ["a.txt"]}))["staged"] == ["a.txt"]
    assert (await road.data("git.unstage", input={"paths": ["a.txt"]}))["staged"] == ["a.txt"]
    await road.data("git.stage", input={"paths": ["a.txt"]})
    assert (await road.call("git.commit", input={"message": "m"}))["effect"] == "confirmed"


async def test_a_locked_and_a_broken_repository_are_said_to_be_so(road: Road) -> None:
    root = repository(road.root)
    (root / ".git" / "index.lock").touch()
    assert (await road.call("git.status"))["ok"]
    assert await road.code("git.stage", input={"paths": ["a.txt"]}) == "conflict"
    (root / ".git" / "index.lock").unlink()
    (root / ".git" / "index").write_bytes(b"garbage" * 10)
    assert await road.code("git.status") == "execution_failed"
    (root / ".git" / "index").unlink()
    (root / ".git" / "config").write_text("[core\nnonsense")
    assert await road.code("git.status") == "execution_failed"
    (root / ".git" / "config").unlink()
    (root / ".git" / "HEAD").unlink()
    assert await road.code("git.status") == "not_found"


async def test_no_repository_and_a_bare_one_are_not_found(road: Road) -> None:
    assert await road.code("git.status") == "not_found"
    git(road.root, "init", "-q", "--bare", ".")
    assert await road.code("git.status") == "not_found"
    assert await road.code("git.log") == "not_found"


async def test_a_repository_of_another_user_is_refused(road: Road) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to give a repository to another user")
    root = repository(road.root)
    os.chown(root / ".git", 1234, 1234)
    assert await road.code("git.status") == "permission_denied"


async def test_nothing_to_stage_or_commit_is_said(road: Road) -> None:
    repository(road.root)
    assert await road.code("git.commit", input={"message": "m"}) == "conflict"
    assert await road.code("git.stage", input={"paths": ["none.txt"]}) == "not_found"
    assert (await road.call("git.stage", input={"paths": ["sub"]}))["effect"] == "suspected_noop"


async def test_a_file_stored_through_a_filter_is_not_staged_raw(road: Road) -> None:
    root = repository(road.root)
    (root / ".gitattributes").write_text("*.txt filter=lfs\n")
    before = git(root, "ls-files", "-s")
    assert await road.code("git.stage", input={"paths": ["a.txt"]}) == "conflict"
    assert git(root, "ls-files", "-s") == before


async def test_a_long_diff_is_cut_and_names_every_file(road: Road) -> None:
    root = repository(road.root)
    (root / "a.txt").write_text("line of text\n" * 100_000)
    (root / "sub" / "x.txt").write_text("changed\n")
    data = await road.data("git.diff", options={"maxBytes": 1000})
    assert data["truncated"] and len(data["diff"]) <= 1000
    assert [file["path"] for file in data["files"]] == ["a.txt", "sub/x.txt"]


async def test_cancelling_ends_git_at_once(road: Road) -> None:
    root = repository(road.root)
    (root / "big.txt").write_bytes(noise(1 << 20) * 200)
    git(root, "add", "-N", "big.txt")
    with anyio.move_on_after(0.05) as scope:
        await road.call("git.diff")
    assert scope.cancelled_caught
    assert children_of_this_process() == []


async def test_the_counts_have_ignored_renamed_and_changed_lines(road: Road) -> None:
    """Points 000-111, 001-064 and 001-062: ignored, renamed, insertions and deletions, as git itself counts them."""
    root = repository(road.root)
    (root / ".gitignore").write_text("*.log\nout/\n")
    (root / "b.txt").write_text("".join(f"line {number}\n" for number in range(20)))
    (root / ".env").write_text("SECRET=1\n")
    git(root, "add", "-A", "-f")
    git(root, "commit", "-q", "-m", "second")
    git(root, "mv", "b.txt", "c.txt")
    (root / "a.txt").write_text("1\n2\n3\n")
    (root / "bin").write_bytes(bytes(range(256)))
    git(root, "add", "bin")
    (root / ".env").write_text("SECRET=2\nSECRET=3\n")
    (root / "x.log").touch()
    (root / "out").mkdir()
    (root / "out" / "many").touch()
    (root / "out" / "more").touch()
    data = await road.data("git.status")
    counts = data["counts"]
    assert (counts["ignored"], counts["renamed"], counts["hidden"]) == (2, 1, 1), counts
    assert not {"x.log", "out/"} & {entry["path"] for entry in data["entries"]}
    # The binary file has no lines, and those of the hidden one are not counted; else they are git's own.
    assert (counts["insertions"], counts["deletions"]) == (3, 2), counts
    assert "5 insertions(+), 3 deletions(-)" in git(root, "diff", "HEAD", "--shortstat")
    assert (await road.data("git.changes"))["counts"] == counts

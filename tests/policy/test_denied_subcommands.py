"""A denied subcommand is found behind its program's options, and no allowed one becomes wider by that."""

import subprocess
from pathlib import Path

import pytest

from computer_linker.errors import PermissionDenied
from computer_linker.model.principal import Principal
from computer_linker.model.scope import Scope, ScopePolicy
from computer_linker.policy.commands import Program, judge_command
from computer_linker.policy.lines import LineRules, judge_line
from computer_linker.policy.subcommands import GIT_COMMANDS
from computer_linker.providers.processes.environment import TAKES_OVER
from support.road import Road, folder_scope

CALLER = Principal(id="local:tester", proof="local_user", session="s", connection="c", client="tests")
DENIED = [
    "git push *", "npm publish *", "cargo publish *", "docker push *", "make deploy *", "go install *", "pip install *",
    "rm -rf *", "docker compose up *",
]  # fmt: skip


def locate(name: str) -> str:
    return name if name.startswith("/") else f"/usr/bin/{name}"


def resolve(name: str, folder: str) -> Program:
    return Program(locate(name), locate(name), is_writable_by_scope=False)


def allows(argv: list[str], allowed: list[str] | None, denied: list[str], real: str = "") -> bool:
    policy = ScopePolicy(allowed_commands=None if allowed is None else [*allowed], denied_commands=[*denied])
    found = Program(locate(argv[0]), real or locate(argv[0]), is_writable_by_scope=False)
    try:
        judge_command(policy, argv, found, locate)
    except PermissionDenied:
        return False
    return True


def allows_line(line: str) -> bool:
    policy = {"deniedCommands": DENIED, "allowShell": True}
    scope = Scope.from_wire({"id": "app", "type": "folder", "roots": ["/srv"], "capabilities": [], "policy": policy})
    try:
        judge_line(LineRules(scope, CALLER, locate, resolve, TAKES_OVER), line)
    except PermissionDenied:
        return False
    return True


BEHIND = [
    "git -C . push o m", "git --no-pager push", "git --git-dir=.git push", "git --git-dir .git push o", "git -P -C a -C b push",
    "git -c a.b=c push", "git --config-env=a.b=HOME push", "git --config-env a.b=HOME push", "git --exec-path=/x push",
    "git --exec-path /x push", "git --work-tree=. push", "git --work-tree . push", "git --namespace n push", "git --super-prefix a/ push",
    "git --attr-source HEAD push", "git --attr-source=HEAD push", "git --literal-pathspecs --bare push", "git --later x push",
    "git -c alias.p=push p", "git --config-env=alias.p=HOME p o", "git -c help.autocorrect=immediate pusg", "git p", "git -C . p",
    "git send-pack ../x", "git for-each-repo --config=a.b push", "/usr/lib/git-core/git-push o", "env git -C . push",
    "nice -n 5 git --no-pager push", "sh -c 'git -C . push'", "npm --prefix web publish", "npm -C web publish", "npm --json true publish",
    "npm -- publish", "npm --prefix --tag x publish", "npm publi", "npm --tag=x pub", "cargo +nightly publish", "cargo --config a=b -v publish", "docker --context x push y",
    "docker -H tcp://x --debug push y", "docker compose -f a.yml up", "make -C sub deploy", "make -j4 A=1 deploy", "go -C sub install x",
    "pip --proxy x --no-input install y", "rm -v -rf x",
]  # fmt: skip
PLAIN = [
    "git", "git --version", "git status", "git -C . status", "git --no-pager log push", "git -C push status", "git -c a.b=push diff",
    "git --git-dir=push log", "git log --grep push", "git submodule update --init", "git commit -m push", "git bisect start", "git --help",
    "npm --prefix web test", "npm run publish", "npm pack", "cargo +nightly test", "cargo --locked build", "docker --context x ps",
    "make -C sub all", "go -C sub build", "pip --no-input list", "rm -f x", "docker compose -f a.yml ps", "git-upload-pack .",
]  # fmt: skip


@pytest.mark.parametrize("line", BEHIND)
def test_a_denied_subcommand_is_found_behind_options(line: str) -> None:
    assert not allows_line(line)
    if "'" not in line:
        assert not allows(line.split(), None, DENIED)
        assert not allows(line.split(), ["*"], DENIED)


@pytest.mark.parametrize("line", PLAIN)
def test_other_subcommands_run(line: str) -> None:
    assert allows_line(line)
    assert allows(line.split(), ["*"], DENIED)


def test_a_link_to_git_and_a_value_that_the_shell_splits_hide_nothing() -> None:
    assert not allows(["./g", "-C", ".", "push"], None, DENIED, real="/usr/bin/git")
    assert not allows(["./g", "p"], None, DENIED, real="/usr/bin/git")
    assert allows(["git-upload-pack", "."], None, DENIED, real="/usr/bin/git")
    assert not allows_line('X=". push"; git -C $X')
    assert not allows_line('git "$X" origin')
    assert not allows(["git", "A=1"], None, DENIED)
    assert not allows(["git", *["-x"] * 4000, "stored"], None, DENIED)
    assert allows_line('git -C "$X" status') and allows_line("git -C ~/x status $X")


@pytest.mark.parametrize(
    "argv", ["git -C . status", "git -c core.pager=x status", "git --exec-path=. status", "git --git-dir=x status"]
)
def test_an_allowed_rule_takes_the_arguments_as_given(argv: str) -> None:
    assert not allows(argv.split(), ["git status *"], DENIED)
    assert not allows(argv.split(), ["git status *"], [])


def test_without_a_denied_subcommand_an_alias_runs() -> None:
    assert allows(["git", "co", "main"], ["git *"], ["npm publish *"])
    assert allows(["git", "co", "main"], ["git *"], ["git -c *"])


def test_the_refusal_of_an_alias_says_why() -> None:
    policy = ScopePolicy(allowed_commands=["git *"], denied_commands=["git push *"])
    with pytest.raises(PermissionDenied, match="co is not one of git's own commands") as refused:
        judge_command(policy, ["git", "-C", ".", "co"], resolve("git", ""), locate)
    assert refused.value.details["rule"] == "deniedCommands"


def test_no_alias_replaces_a_listed_command_of_git(tmp_path: Path) -> None:
    """Git ignores an alias with the name of a command that it has itself, so each listed name has to be one."""
    listed = subprocess.run(
        ["git", "--list-cmds=main"], cwd=tmp_path, check=True, timeout=30, capture_output=True, text=True
    )
    assert set(listed.stdout.split()) >= GIT_COMMANDS


@pytest.mark.anyio
async def test_nothing_is_pushed(tmp_path: Path) -> None:
    root = tmp_path / "root"
    script = """
    git init -q --bare away.git && git init -q w && cd w && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x
    git config alias.stored push && git remote add away ../away.git
    """
    root.mkdir()
    subprocess.run(["sh", "-ec", script], cwd=root, check=True, timeout=240)
    refspec = ["away", "HEAD:refs/heads/new"]
    forms = [
        ["push"], ["-C", ".", "push"], ["--no-pager", "push"], ["--git-dir=.git", "push"], ["-c", "alias.p=push", "p"], ["stored"],
    ]  # fmt: skip
    scope = folder_scope(root, "app", allowedCommands=["git *"], deniedCommands=["git push *"], allowShell=True)
    async with Road.open(tmp_path, [scope]) as road:
        for form in forms:
            argv = ["git", *form, *refspec]
            for command in (argv, " ".join(argv), f"true && {' '.join(argv)}"):
                assert await road.code("command.run", "w", input={"command": command}) == "permission_denied", command
        assert (await road.data("command.run", "w", input={"command": "git -C . log --format=%s"}))["stdout"] == "x\n"
    assert not any((root / "away.git" / "refs" / "heads").iterdir())

"""Rules over an argv whose program is an absolute file."""

import pytest

from computer_linker.errors import PermissionDenied, ProviderUnavailable
from computer_linker.model.scope import CommandRule, Scope, ScopePolicy
from computer_linker.policy.commands import (
    Program,
    check_rules,
    diagnose_rules,
    judge_boundary,
    judge_command,
    not_allowed,
)

FILES = {"git": "/usr/bin/git", "rm": "/usr/bin/rm", "echo": "/usr/bin/echo", "busybox": "/usr/bin/busybox"}


def locate(name: str) -> str | None:
    return name if name.startswith("/") else "/root/" + name if "/" in name else FILES.get(name)


def program(path: str, real: str | None = None, *, in_scope: bool = False) -> Program:
    return Program(path, real or path, in_scope)


def allows(policy: ScopePolicy, argv: list[str], found: Program) -> bool:
    try:
        judge_command(policy, argv, found, locate)
    except PermissionDenied:
        return False
    return True


@pytest.mark.parametrize(
    ("pattern", "argv", "expected"),
    [
        ("git *", ["git", "status"], True),
        ("git *", ["git"], True),
        ("git *", ["/usr/bin/git", "status"], True),
        ("git", ["git"], True),
        ("git", ["git", "status"], False),
        ("git status", ["git", "status"], True),
        ("git status", ["git", "status", "-s"], False),
        ("git * --stat", ["git", "log", "--stat"], True),
        ("git * --stat", ["git", "--stat"], False),
        ("git log --format=*", ["git", "log", "--format=%H"], True),
        ("git log *", ["git", "log\n", "x"], False),
        ("*", ["git", "anything"], True),
        ("/usr/bin/git *", ["git", "log"], True),
        ("/opt/git *", ["git", "log"], False),
        ("echo *", ["git", "log"], False),
    ],
)
def test_a_rule_matches_the_argv_it_says(pattern: str, argv: list[str], expected: bool) -> None:
    assert allows(ScopePolicy(allowed_commands=[pattern]), argv, program("/usr/bin/git")) is expected


def test_a_denied_rule_wins_over_an_allowed_one() -> None:
    policy = ScopePolicy(allowed_commands=["rm *"], denied_commands=["rm -rf *"])
    assert allows(policy, ["rm", "x"], program("/usr/bin/rm"))
    assert not allows(policy, ["rm", "-rf", "x"], program("/usr/bin/rm"))
    assert not allows(policy, ["/usr/bin/rm", "-rf"], program("/usr/bin/rm"))


def test_a_denied_name_is_found_behind_a_link_and_in_any_case() -> None:
    policy = ScopePolicy(denied_commands=["rm *"])
    assert not allows(policy, ["del", "x"], program("/usr/local/bin/del", "/usr/bin/rm"))
    assert not allows(policy, ["RM", "x"], program("/opt/RM"))


def test_a_multi_call_program_is_not_allowed_by_another_of_its_names() -> None:
    policy = ScopePolicy(allowed_commands=["echo *"])
    assert not allows(policy, ["rm", "x"], program("/usr/bin/rm", "/usr/bin/busybox"))


def test_a_bare_name_never_means_a_file_inside_the_scope() -> None:
    policy = ScopePolicy(allowed_commands=["echo *"])
    assert not allows(policy, ["./echo", "x"], program("/root/echo", in_scope=True))
    assert allows(ScopePolicy(allowed_commands=["./echo *"]), ["./echo"], program("/root/./echo", in_scope=True))


def scope(policy: dict[str, object] | None = None) -> Scope:
    value: dict[str, object] = {"id": "app", "type": "folder", "roots": ["/root"], "capabilities": ["command:run"]}
    return Scope.from_wire(value if policy is None else {**value, "policy": policy})


@pytest.mark.parametrize(
    ("policy", "holds", "error"),
    [
        ({"sandbox": "required", "allowedCommands": ["*"]}, False, ProviderUnavailable),
        ({"sandbox": "required", "allowedCommands": ["*"]}, True, None),
        ({"sandbox": "auto", "allowedCommands": ["*"]}, False, None),
        ({"sandbox": "auto"}, False, PermissionDenied),
        ({"sandbox": "off"}, False, PermissionDenied),
        ({}, True, None),
        (None, True, PermissionDenied),
        (None, False, PermissionDenied),
    ],
)
def test_no_allow_list_needs_a_policy_and_a_boundary(
    policy: dict[str, object] | None, holds: bool, error: type[Exception] | None
) -> None:
    def judged() -> None:
        judge_boundary(scope(policy), boundary_holds=holds, shell=False, program=program("/usr/bin/git"))

    if error is None:
        judged()
    else:
        with pytest.raises(error):
            judged()


def test_a_shell_and_a_program_of_the_scope_need_a_boundary() -> None:
    for shell, found in ((True, program("/bin/sh")), (False, program("/root/x", in_scope=True))):
        with pytest.raises(PermissionDenied):
            judge_boundary(scope({"allowedCommands": ["*"]}), boundary_holds=False, shell=shell, program=found)
        judge_boundary(scope({"allowedCommands": ["*"]}), boundary_holds=True, shell=shell, program=found)


def test_rules_with_examples_are_checked() -> None:
    good = CommandRule(pattern="npm run *", matches=["npm run build"], not_matches=["npm install", "npm run x; id"])
    assert check_rules(ScopePolicy(allowed_commands=[good, "git *"])) == []
    bad = CommandRule(pattern="npm run *", matches=["npm test"], not_matches=["npm run x"])
    problems = check_rules(ScopePolicy(allowed_commands=["git *", bad], denied_commands=["a; b"]))
    assert len(problems) == 3
    assert problems[0].startswith("allowedCommands[1]") and problems[2].startswith("deniedCommands[0]")


def test_launchers_in_an_allow_list_are_named_when_nothing_holds_them() -> None:
    policy = ScopePolicy(allowed_commands=["git *", "python3.11 *", "ls *"])
    assert diagnose_rules(policy, boundary_holds=True) == []
    (warning,) = diagnose_rules(policy, boundary_holds=False)
    assert "git, python3.11" in warning and "ls" not in warning.split(":")[0]


def test_no_rule_is_suggested_for_the_owners_own_program() -> None:
    policy = scope({"allowedCommands": ["make *"]}).policy
    own = not_allowed(policy, ("computer-linker", "approvals", "allow"), "app", boundary_holds=True)
    assert "scope allow" not in own.message and "remedy" not in own.details
    other = not_allowed(policy, ("cargo", "test"), "app", boundary_holds=True)
    assert other.details["remedy"] == 'computer-linker scope allow app "cargo test *"'

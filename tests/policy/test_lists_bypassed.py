"""Lines and arguments that would run what no rule of the scope allows."""

import subprocess
from pathlib import Path

import pytest

from computer_linker.errors import PermissionDenied
from computer_linker.model.principal import Principal
from computer_linker.model.scope import Scope
from computer_linker.policy.commands import Program
from computer_linker.policy.lines import LineRules, judge_line
from computer_linker.policy.read_only import is_read_only
from computer_linker.providers.processes.environment import TAKES_OVER

CALLER = Principal(id="local:tester", proof="local_user", session="s", connection="c", client="tests")


def judge(line: str) -> None:
    policy = {"allowedCommands": ["ls *"], "deniedCommands": ["touch *"], "allowShell": True}
    scope = Scope.from_wire({"id": "app", "type": "folder", "roots": ["/srv"], "capabilities": [], "policy": policy})
    judge_line(LineRules(scope, CALLER, lambda name: f"/usr/bin/{name}", resolve, TAKES_OVER), line)


def resolve(name: str, folder: str) -> Program:
    return Program(f"/usr/bin/{name}", f"/usr/bin/{name}", is_writable_by_scope=False)


@pytest.mark.parametrize(
    "line",
    [
        "declare -n x=PATH; x=bin; ls",
        "typeset -xn x=PATH; x=bin; ls",
        "printf -vPATH %s bin; ls",
        "builtin printf -vPATH %s bin; ls",
        "read -raPATH <<< bin; ls",
        "wait -p PATH; ls",
        "((PATH=1)); ls",
        "((PATH += 1)); ls",
        ": $((PATH=1)); ls",
        "a[PATH=1]=2; ls",
        "echo ${a[PATH=1]}; ls",
        "[[ PATH=1 -eq 1 ]]; ls",
        "set -k; ls LD_PRELOAD=./x.so",
        "set -eo keyword; ls LD_PRELOAD=./x.so",
        "x='a[$(touch made)]'; : $((x))",
        'x="a[\\$(touch made)]"; : $((x))',
        "test -v 'x[$(touch made)]'",
        "printf -v 'x[`touch made`]' 1",
        "echo touch | xargs -I cat cat made",
        "echo touch | xargs -Icat cat made",
        "echo touch | xargs --replace=cat cat made",
        "echo touch | xargs -iL L made",
        "echo x | xargs --process-slot-var=PATH ls",
        "env --split-string=touch cat",
        "env --chdir=bin ls",
    ],
)
def test_a_line_does_not_choose_its_programs_by_variables(line: str) -> None:
    with pytest.raises(PermissionDenied):
        judge(line)


@pytest.mark.parametrize(
    "line",
    [
        "i=$((i+1)); ls $i", '[[ $HOME = x ]] && ls', '[ -z "$PATH" ] || ls', "declare -a x; ls", "set -euo pipefail; ls",
        "((x==1)) && ls", "read -r line < f; ls", "wait -n; ls", "set -- a b; ls CC=gcc", 'ls "${x[0]}"',
        "ls | xargs -I{} cat {}", "ls | xargs -n1 --max-procs=2 cat", "timeout --signal=KILL 5 ls",
        "set -e; ls | sed -n '/[[:space:]]x[,;]/p'",
    ],
)  # fmt: skip
def test_ordinary_lines_still_run(line: str) -> None:
    judge(line)


@pytest.mark.parametrize(
    "script",
    [
        "s/[/]/p;s/e;q;#/p/", "s/[^/]/p;s/e;q;#/p/", "s/[]/]/p;s/e;q;#/p/", "s/[^]/]/p;s/e;q;#/p/", "s|[|]|p;s|e;q;#|p|",
        "/[/]/p;s/w made;/p/",
    ],
)  # fmt: skip
def test_sed_runs_nothing_by_a_delimiter_in_brackets(script: str) -> None:
    assert not is_read_only(("sed", script, "file"))


def test_a_delimiter_in_brackets_is_why(tmp_path: Path) -> None:
    """GNU sed takes `p;s` for the replacement here and `e` for a flag, and runs the line."""
    (tmp_path / "file").write_text("touch made #/\n")
    subprocess.run(["sed", "s/[/]/p;s/e;q;#/p/", "file"], cwd=tmp_path, check=True, timeout=30)
    assert (tmp_path / "made").exists()


@pytest.mark.parametrize("script", ["/[a-z]/p", "s/[^a-z,|]/x/g", "s/[[:space:]]*$//", "s/a\\[b/[x]/g", "1,10p"])
def test_simple_scripts_of_sed_need_no_rule(script: str) -> None:
    assert is_read_only(("sed", script, "file"))

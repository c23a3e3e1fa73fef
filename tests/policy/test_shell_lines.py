"""Shell lines against the lists of commands: what can be read is judged, what cannot be read is refused."""

import os
import shutil
from pathlib import Path

import pytest

from computer_linker.errors import LinkError
from computer_linker.model.principal import Principal
from computer_linker.model.scope import Scope
from computer_linker.policy.lines import LineRules, judge_line
from computer_linker.policy.read_only import is_read_only
from computer_linker.policy.shell_line import Unknown, read_line
from computer_linker.providers.processes.environment import TAKES_OVER
from computer_linker.providers.processes.programs import Programs
from computer_linker.providers.search.ripgrep import program as ripgrep

CALLER = Principal(id="local:tester", proof="local_user", session="s", connection="c")
ONE, MANY = Unknown(many=False), Unknown(many=True)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lines") / "root"
    (folder / ".venv" / "bin").mkdir(parents=True)
    (folder / ".venv" / "pyvenv.cfg").write_text("home = /usr/bin\n")
    (folder / ".venv" / "bin" / "python3").symlink_to("/usr/bin/python3")
    (folder / "node_modules" / ".bin").mkdir(parents=True)
    (folder / "bin").mkdir()
    for name in ("node_modules/.bin/tool", "run.sh", "bin/python3", ".venv/bin/rm"):
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    (folder / "link").symlink_to("/usr/bin/rm")
    (folder / "sub").mkdir()
    (folder / "sub" / "run.sh").write_text("#!/bin/sh\n")
    (folder / "sub" / "run.sh").chmod(0o755)
    return folder


def refusal(root: Path, line: str, allowed: list[str] | None, denied: list[str]) -> str:
    """The sentence of the refusal; empty when the line may run."""
    policy = {"deniedCommands": denied, **({} if allowed is None else {"allowedCommands": allowed})}
    scope = Scope.from_wire({"id": "app", "roots": [str(root)], "capabilities": [], "policy": policy})
    programs = Programs([str(root)], {"PATH": "/usr/bin:/bin"}, extras=[ripgrep() or "/usr/bin/rg"])

    def resolve(name: str, folder: str) -> object:
        try:
            return programs.resolve(name, os.path.join(root, folder))
        except LinkError:
            return None

    rules = LineRules(scope, CALLER, programs.locate, resolve, TAKES_OVER)  # type: ignore[arg-type]
    try:
        judge_line(rules, line)
    except LinkError as error:
        return error.message
    return ""


RM = [
    "rm -rf x", "rm  -rf\tx", "r\\m -rf x", "'rm' -rf x", '"rm" -rf x', "r'm' -rf x", 'r""m -rf x', "rm '-rf' x", 'rm "-r"f x',
    "/bin/rm -rf x", "/usr/bin/rm -rf x", "/usr/bin/../bin/rm -rf x", "./link -rf x", "true && rm -rf x", "true || rm -rf x",
    "true; rm -rf x", "true & rm -rf x", "true | rm -rf x", "true |& rm -rf x", "true\nrm -rf x", "(rm -rf x)", "{ rm -rf x; }",
    "! rm -rf x", "if rm -rf x; then :; fi", "if true; then rm -rf x; fi", "if false; then :; else rm -rf x; fi",
    "while rm -rf x; do :; done", "until false; do rm -rf x; done", "for i in a; do rm -rf x; done",
    "case a in a) rm -rf x;; esac", "f() { rm -rf x; }; f", "function f { rm -rf x; }; f", "echo $(rm -rf x)", "echo `rm -rf x`",
    'echo "$(rm -rf x)"', 'echo "`rm -rf x`"', "cat <(rm -rf x)", "echo x > >(rm -rf x)", "cat <<E\n$(rm -rf x)\nE",
    "cat <<-E\n\t`rm -rf x`\n\tE", "cat <<< $(rm -rf x)", "echo $(( $(rm -rf x) ))", "echo ${X:-$(rm -rf x)}", "A=1 rm -rf x",
    "A=$(rm -rf x)", "export A=$(rm -rf x)", ">out rm -rf x", "rm >out -rf x", "rm -rf >out x", "2>&1 rm -rf x", "rm <<E -rf x\nE",
    "rm <<< a -rf x", "command rm -rf x", "command -p rm -rf x", "exec rm -rf x", "exec -a ls rm -rf x", "builtin command rm -rf x",
    "env rm -rf x", "env A=1 rm -rf x", "env -i rm -rf x", "env -u A rm -rf x", "nohup rm -rf x", "nice rm -rf x",
    "nice -n 5 rm -rf x", "timeout 5 rm -rf x", "timeout -s KILL 5 rm -rf x", "time rm -rf x", "time -p rm -rf x",
    "setsid rm -rf x", "stdbuf -oL rm -rf x", "sudo rm -rf x", "sudo -u a rm -rf x", "doas rm -rf x", "xargs rm -rf x",
    "xargs -0 -n 1 rm -rf x", "echo x | xargs rm -rf", "find . -exec rm -rf {} \\;", "find . -exec rm -rf {} +",
    "find . -execdir rm -rf {} ';'", "busybox rm -rf x", "sh -c 'rm -rf x'", "bash -c \"rm -rf x\"", "bash -ec 'rm -rf x'",
    "env bash -c 'rm -rf x'", "sh -c 'sh -c \"rm -rf x\"'", "eval rm -rf x", "eval 'rm -rf x'", "eval 'true; rm -rf x'",
    "rm $X x", "rm $(echo -rf) x", "rm -r$F x", 'rm "$X" x', "rm * x", "rm {-rf,x}", "rm $'-rf' x", "\\rm -rf x",
    "rm -rf x # a comment", "true # comment\nrm -rf x", "rm \\\n-rf x", "r\\\nm -rf x", "[ -f a ] && rm -rf x",
    "[[ -f a ]] && rm -rf x", "[[ $(rm -rf x) ]]", "false && rm() { :; }; rm -rf x", "time -p env nice rm -rf x",
    "select a in b; do rm -rf x; done", "for ((i=0; i<$(rm -rf x); i++)); do :; done", "a=([0]=$(rm -rf x))", "coproc rm -rf x",
    "trap 'rm -rf x' EXIT", "sh -lc 'rm -rf x'", "bash --norc -c 'rm -rf x'", "bash -o pipefail -c 'rm -rf x'", "sh <<E\nrm -rf x\nE",
    "echo 'rm -rf x' | sh", "echo 'rm -rf x' | bash -s", "bash <<< 'rm -rf x'", "let a=$(rm -rf x)", "RM -rf x",
]  # fmt: skip


@pytest.mark.parametrize("line", RM)
def test_a_denied_command_is_found_wherever_it_stands(root: Path, line: str) -> None:
    assert refusal(root, line, None, ["rm -rf *"]), line


@pytest.mark.parametrize(
    "line",
    [
        "$X -rf x", "$(echo rm) -rf x", "`echo rm` -rf x", "${X} -rf x", '"$X" -rf x', "$'rm' -rf x", "$'\\x72m' -rf x",
        "{rm,-rf,x}", "r{m,n} -rf x", "r? -rf x", "/bin/r* -rf x", "~/rm -rf x", ". ./script", "source script", "alias r=rm; r -rf x",
        "hash -p /bin/rm ls; ls -rf x", "enable -f x.so x", "PATH=/tmp ls", "export PATH=/tmp; ls", "PATH+=:/tmp", "LD_PRELOAD=x ls",
        "BASH_ENV=x bash run.sh", "read PATH < file; ls", "declare PATH=/tmp", "for PATH in /tmp; do ls; done", "printf -v PATH x",
        "env PATH=/tmp ls", "env LD_PRELOAD=x ls", "IFS=x; ls", "unset PATH; ls", "eval $X", "eval \"$X\"", "sh -c $X", "sh -c \"$X\"",
        "xargs $X", "env $X", "shopt -s expand_aliases", "echo 'unclosed", "echo \"unclosed", "ls &&", "if true; then", "(ls", "cat <<E",
        "mapfile PATH", "coproc cat", "sh -lc 'ls'", "nice --$X ls", "typeset -x PATH=x", "export \"$X\"", "timeout $X ls 5",
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_where_there_are_lists(root: Path, line: str) -> None:
    for allowed, denied in ((None, ["rm -rf *"]), (["git *"], []), (["git *"], ["rm -rf *"])):
        if line == "timeout $X ls 5" and allowed is None:
            continue
        assert refusal(root, line, allowed, denied), (line, allowed, denied)


@pytest.mark.parametrize("line", ["$X y", "rm -rf x", "PATH=/tmp ls", ". ./env && npm test", "eval $X"])
def test_without_lists_the_boundary_alone_decides(root: Path, line: str) -> None:
    assert refusal(root, line, None, []) == ""


@pytest.mark.parametrize(
    "line",
    [
        "ls", "ls -la | head -5", "git status && git diff | cat", "git log; ls", "cat a b > c", "grep -rn x . | sort -u | wc -l",
        "cd sub && git status", "for f in a b; do cat $f; done", "if [ -f a ]; then cat a; else echo none; fi",
        "find . -name '*.py' -type f | xargs grep -l x", "find . -name '*.py' -print0 | xargs -0 -n 10 wc -l", "sed -n '1,20p' a",
        "sed -n '/x/p;5q' a", "sed -e 's/a/b/g' a | head", "A=1 git status", "time git status", "timeout 5 git status",
        "env A=1 git status", "command -v git", "git commit -m \"$MESSAGE\"", "echo \"a b\" && printf '%s' x", "git add *.py",
        "sh -c 'git status; ls'", "bash -c \"ls\"", "exec git status", "f() { git status; }; f", "cat <<E\ntext\nE",
        "while read -r l; do echo $l; done < a", "rg -n 'x|y' -g '*.py' .", "jq '.a' f.json", "diff -u a b", "true || git status",
        ".venv/bin/python3 -c 'x'", "cd sub; ls; git status", "ls 2>/dev/null", "(cd sub && ls)", "[[ -d x ]] && ls", "! ls",
        "sort -k2,2n -t, a", "git log --oneline | head -n 3 | cut -d' ' -f1", "nice -n 5 git gc", "uniq -c a", "export A=b; ls",
        "eval 'git status'", "ls # rm", "node_modules/.bin/tool x", "./node_modules/.bin/tool",
    ],
)  # fmt: skip
def test_ordinary_lines_run(root: Path, line: str) -> None:
    assert refusal(root, line, ["git *", "python3 *", "tool *"], ["rm -rf *", "git push *"]) == "", line


@pytest.mark.parametrize(
    "line",
    [
        "curl x", "npm test", "ls && npm test", "ls | tee x", "cat a | sh", "find . -exec cat {} \\;", "find . -delete",
        "find . -fprint x", "find . $X", "sed -i s/a/b/ a", "sed -n 1p a -i", "sed 's/a/b/e' a", "sed 's/a/b/w out' a", "sed -n 'w out' a",
        "sed -f script a", "sed '1e ls' a", "sort -o out a", "sort --output=out a", "sort --o=out a", "sort -uo out a",
        "sort --compress-program=sh a", "sort $X", "uniq a out", "uniq a $X", "tree -o out", "rg --pre sh x", "rg --pre=sh x",
        "rg -z x", "rg --hostname-bin sh x", "date -s 1", "date --set=1", "diff -l a b", "file -C -m x", "awk '{print}' a",
        "xargs npm", "env npm test", "command npm test", "exec npm test", "sh -c 'npm test'", "eval 'npm test'", "nohup npm test",
        "./run.sh", "bin/python3 x", "run.sh", "git status; npm", "git push origin", "sudo ls", "python3.11 x", "less a", "vim a",
        "tee x", "dd if=a of=b", "cp a b", "mv a b", "touch a", "mkdir a", "ln -s a b", "chmod 1 a", "kill 1", "wget x", "nc -l 1",
        "cd a && cd b && ./run.sh", "cd $X && .venv/bin/python3 x", "\u0456s", "l\u0455", "git\u00a0status", "ls\u200b", "l\0s",
        "f() { npm test; }; f", "npm() { :; }; npm test", "ls < $(npm test)", "find . -newerXY x -exec sh", "sed s/a/b/\nw\\ x a",
    ],
)  # fmt: skip
def test_everything_else_needs_a_rule(root: Path, line: str) -> None:
    if shutil.which("npm") is None and "npm() {" in line:
        pytest.skip("only a program that is there could be meant")
    assert refusal(root, line, ["git *", "python3 *"], ["git push *"]), line


def test_a_refusal_names_what_is_allowed_and_the_owners_command(root: Path) -> None:
    told = refusal(root, "git status && cargo test --all", ["git *", "npm *"], [])
    assert "Allowed here: git, npm, and programs that only read" in told
    assert 'computer-linker scope allow app "cargo test *"' in told


@pytest.mark.parametrize(
    ("line", "commands"),
    [
        ("a b", [("a", "b")]), ("a 'b c' \"d e\"", [("a", "b c", "d e")]), ("a $B", [("a", MANY)]), ('a "$B"', [("a", ONE)]),
        ("a | b && c; d & e", [("a",), ("b",), ("c",), ("d",), ("e",)]), ("a {} +", [("a", "{}", "+")]), ("a \\;", [("a", ";")]),
        ("a {b,c}", [("a", MANY)]), ('a "b\\"c"', [("a", 'b"c')]), ("a 'b\\c'", [("a", "b\\c")]), ("a b\\ c", [("a", "b c")]),
        ("a '' x", [("a", "", "x")]), ('a ""', [("a", "")]), ("a #b", [("a",)]), ("a b#c", [("a", "b#c")]), ("a -1 2", [("a", "-1", "2")]),
        ("a=b c", [("c",)]), ('a "$(b)"', [("a", ONE), ("b",)]), ("a x=y", [("a", "x=y")]), ('a " b "', [("a", " b ")]),
        ('a "x\ny"', [("a", "x\ny")]), ('a "b\\\nc"', [("a", "bc")]), ("a ''\"b\"'c'd", [("a", "bcd")]), ("a >b c 2>d e", [("a", "c", "e")]),
    ],
)  # fmt: skip
def test_words_are_read_as_the_shell_gives_them(line: str, commands: list[tuple[object, ...]]) -> None:
    assert list(read_line(line).commands) == commands


@pytest.mark.parametrize(
    ("words", "reads"),
    [
        (("sed", "-n", "1,5p"), True), (("sed", "-n", "$p"), True), (("sed", "s/;/w/"), True), (("sed", "s/a/b/;w x"), False),
        (("sed", "-ni", "1p"), False), (("sed", "--in-place", "1p"), False), (("sed", "-n"), False), (("sed", "-E", "s|a|b|gI", "f"), True),
        (("sed", "1~2p"), False), (("sed", "/a/,/b/p"), True), (("sed", "/a/r x"), False), (("sed", "y/a/b/"), False), (("sed", "p;;p"), False),
        (("sed", "s/a/b/ge"), False), (("sed", "s/a/b\\/w x/"), True), (("sed", "--", "1p", "-i"), True), (("find", ".", "-size", "-10k"), True),
        (("find", ".", "-ok", "x"), False), (("find", ".", "-fls", "x"), False), (("sort", "-t", "-o"), False), (("sort", "-to"), False),
        (("rg", "--", "--pre"), True), (("rg", "-nz"), False), (("cat", MANY), True), (("find", MANY), False), (("uniq", "-c", "a"), True),
        (("file", "a"), True), (("file", "-z", "a"), False), (("tree", "-L", "2"), True), (("tree", "-Lo"), False), ((MANY, "a"), False),
    ],
)  # fmt: skip
def test_only_arguments_that_read_are_ordinary(words: tuple[str | Unknown, ...], reads: bool) -> None:
    assert is_read_only(words) is reads

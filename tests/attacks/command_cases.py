"""Attacks through commands: what a shell would read, wrappers, trusted tools, the sandbox, processes of others."""

import json
from typing import Any

from attacks.case import Case
from attacks.ground import CANARY, Answer, Field, Ground

MARKED = ["$MARK"]
KEPT = ["$MARK.d"]


def _run(name: str, scope: str, command: Any, **more: Any) -> Case:
    return Case(name, scope, "command.run", ".", {"command": command}, absent=MARKED, present=KEPT, hides=[CANARY],
                unchanged=["$OUT", "$HOME"], **more)  # fmt: skip


def _repository(ground: Ground) -> None:
    ground.repository(ground.exec)
    (ground.out / "repo").mkdir()
    ground.repository(ground.out / "repo")
    (ground.exec / "bin").mkdir()
    ground.script(ground.exec / "bin").rename(ground.exec / "bin" / "git-status")


def _package(ground: Ground) -> None:
    (ground.exec / "package.json").write_text(json.dumps({"name": "p", "scripts": {"ok": "echo ok"}}))
    (ground.exec / ".npmrc").write_text(f"script-shell={ground.script(ground.exec)}\n")
    (ground.exec / "evil").mkdir()
    evil = {"name": "evil", "version": "1.0.0", "scripts": {"postinstall": f"touch {ground.mark}"}}
    (ground.exec / "evil" / "package.json").write_text(json.dumps(evil))


def _required(ground: Ground) -> None:
    (ground.exec / "evil.js").write_text(f"require('fs').writeFileSync('{ground.mark}','')")


def _trailing_space(ground: Ground) -> None:
    (ground.exec / "bin").mkdir()
    for place in (ground.exec, ground.exec / "bin"):
        ground.script(place).rename(place / "git ")


def _parent_manifest(ground: Ground) -> None:
    scripts = {"x": f"touch {ground.mark}"}
    (ground.repo / "package.json").write_text(json.dumps({"name": "p", "scripts": scripts}))


def _two_children_are_recorded(field: Field, answer: Answer) -> None:
    events = field.call("app", "history.last").data["events"][:4]
    assert {"file.stat", "command.run"} <= {event["op"] for event in events}
    assert [event["errorCode"] for event in events if event["op"] == "command.run"] == ["permission_denied"]


def _few_descriptors(field: Field, answer: Answer) -> None:
    if answer.ok:
        assert {int(word) for word in answer.data["stdout"].split()} <= {0, 1, 2, 3}


def _loopback() -> str:
    return "require('http').get('http://127.0.0.1:PORT/healthz',r=>console.log('GOT',r.statusCode)).on('error',()=>0)"


_CHAIN = " && ".join(["true"] * 50 + ["touch $MARK"])
_FAKE = "require('net').connect(80,'169.254.169.254').on('connect',()=>console.log('CONNECTED')).on('error',()=>0)"
_ABSTRACT = (
    "require('net').connect('\\0/tmp/.X11-unix/X0').on('connect',()=>console.log('CONNECTED')).on('error',()=>0)"
)

TEXTS = [
    _run("CMD-001", "exec", "echo hi; touch $MARK"),
    _run("CMD-003", "exec", "echo hi || touch $MARK"),
    _run("CMD-016", "exec", "echo pwn > $MARK"),
    _run("CMD-021", "exec", "cat < $OUT/secret.txt"),
    _run("CMD-024", "exec", "echo ${x@P}"),
    _run("CMD-028", "execdeny", "r''m -rf $MARK.d"),
    _run("CMD-031", "execdeny", "{rm,-rf,$MARK.d}"),
    _run("CMD-032", "execdeny", "a=r b=m; $a$b -rf $MARK.d"),
    _run("CMD-039", "execdeny", "sh -c 'rm -rf $MARK.d'"),
    _run("CMD-044", "execdeny", "nohup touch $MARK"),
    _run("CMD-049", "execdeny", "chrt -o 0 touch $MARK"),
    _run("CMD-051", "execdeny", "taskset 1 touch $MARK"),
    _run("CMD-053", "execdeny", "strace -f touch $MARK"),
    _run("CMD-059", "exec", "NODE_OPTIONS='--require ./evil.js' node -v", setup=_required),
    _run("CMD-063", "exec", "alias ls='touch $MARK'\nls"),
    _run("CMD-067", "execdeny", _CHAIN, ok=False),
    _run("CMD-068", "exec", "echo 'unterminated", ok=False),
    _run("CMD-113", "execdeny", "\uff52\uff4d -rf $MARK.d", ok=False),
    _run("CMD-119", "execrf", "rm\t-rf $MARK.d"),
    _run("CMD-120", "execrf", "rm -fr $MARK.d"),
    _run("CMD-121", "execrf", "rm -r -f $MARK.d"),
]

ARGVS = [
    _run("CMD-070", "exec", ["node", "-e", "require('fs').writeFileSync('$MARK','')"]),
    _run("CMD-076", "exec", ["npm", "install", "./evil"], setup=_package),
    _run("CMD-078", "exec", ["npm", "run", "ok"], setup=_package),
    _run("CMD-079", "exec", ["git", "-c", "core.pager=touch $MARK", "-p", "log"], setup=_repository),
    _run("CMD-080", "exec", ["git", "-c", "alias.x=!touch $MARK", "x"], setup=_repository),
    _run("CMD-081", "exec", ["git", "--exec-path=$ROOT_X/bin", "status"], setup=_repository),
    _run("CMD-082", "exec", ["git", "-C", "$OUT/repo", "log"], setup=_repository),
    _run("CMD-093", "execsafe", ["sed", "1e touch $MARK", "/etc/hostname"]),
    _run("CMD-098", "execsafe", ["awk", 'BEGIN{system("touch $MARK")}']),
    _run("CMD-102", "execsafe", ["find", "$MARK.d", "-delete"]),
    _run("CMD-104", "execsafe", ["xargs", "-a", "/etc/hostname", "sh", "-c", "touch $MARK"]),
    _run("CMD-105", "execsafe", ["man", "--html=touch $MARK", "man"]),
    _run("CMD-111", "execsafe", ["tee", "$MARK"]),
    _run("CMD-111-outside", "execsafe", ["tee", "$OUT/secret.txt"]),
    _run("CMD-111-read", "execsafe", ["sed", "", "$OUT/secret.txt"]),
    _run("CMD-126", "exec", ["git ", "status"], ok=False, setup=_trailing_space),
    _run("CMD-133", "execnopolicy", ["id"], ok=False, codes=["permission_denied"]),
    _run("CMD-135", "app", ["echo", "hi"], ok=False, codes=["permission_denied"]),
    Case("CMD-134", "exec", "config.set", input={"key": "allowedCommands", "value": ["*"]}, ok=False,
         codes=["unknown_operation", "permission_denied"]),
    Case("CMD-136", "app", "process.start", ".", {"command": ["touch", "$MARK"]}, ok=False, codes=["permission_denied"],
         absent=MARKED),
    Case("CMD-137", "app", "batch", None, {"operations": [
        {"op": "file.stat", "target": "."},
        {"op": "command.run", "target": ".", "input": {"command": ["touch", "$MARK"]}}]},
        absent=MARKED, after=_two_children_are_recorded),
    Case("CMD-138", "exec", "package.run", ".", {"script": "--ignore-scripts=false", "args": ["x"]}, ok=False, setup=_package),
    Case("CMD-140", "gitsub", "package.run", ".", {"script": "x"}, ok=False, setup=_parent_manifest, absent=MARKED),
]  # fmt: skip

SANDBOX = [
    _run("SBX-005", "exec", ["node", "-e", "require('fs').mkdirSync('$ROOT_X/.codex',{recursive:true});"
         "require('fs').writeFileSync('$ROOT_X/.codex/config.toml','x')"]),
    _run("SBX-009", "exec", ["ls", "/proc/self/fd"], after=_few_descriptors),
    _run("SBX-011", "exec", ["node", "-e", _FAKE]),
    _run("SBX-012", "exec", ["node", "-e", _ABSTRACT]),
    _run("SBX-023", "execsh", ["sh", "-c", "sleep 300 & echo done"], max_ms=30_000),
    _run("SBX-state", "execsh", ["sh", "-c", "cat $STATE/config.json; ls $STATE; echo x >> $STATE/config.json"]),
    _run("SBX-environment", "execsh", ["sh", "-c", "env; cat /proc/*/environ"]),
    Case("PROC-005", "exec", "process.stop", "1", ok=False, codes=["process_not_found", "invalid_request"]),
    Case("PROC-007", "exec", "process.stop", "-1", ok=False, codes=["process_not_found", "invalid_request"]),
]  # fmt: skip


def _secret(name: str, *argv: str, secret: str) -> Case:
    return Case(name, "exec", "command.run", ".", {"command": list(argv)}, unstored=[secret])


RECORDS = [
    _secret("HIST-001", "echo", "Authorization: Bearer SECRETbearer123456", secret="SECRETbearer123456"),
    _secret("HIST-002", "echo", "Authorization: Basic dXNlcjpTRUNSRVRwYXNz", secret="dXNlcjpTRUNSRVRwYXNz"),
    _secret("HIST-006", "echo", "AWS_SECRET_ACCESS_KEY=wJalrSECRETutnFEMI", secret="wJalrSECRETutnFEMI"),
    _secret("HIST-011", "mysql", "--password", "SECRETpw2", secret="SECRETpw2"),
    _secret("HIST-015", "echo", '{"client_secret":"SECRETjson"}', secret="SECRETjson"),
    _secret("HIST-018", "echo", "sk-ant-api03-SECRETant", secret="SECRETant"),
    _secret("HIST-019", "echo", "sk-\u200bSECRETzw", "tok''en=SECRETq", secret="SECRETzw"),
    Case("HIST-021", "app", "file.read", "SECRETfilename_password=SECRETfn.txt", ok=False, unstored=["SECRETfn"]),
    Case("HIST-021-scope", "token=SECRETscope", "file.read", "a", ok=False, unstored=["SECRETscope"]),
    Case("HIST-021-op", "app", "api_key=SECRETop", "a", ok=False, unstored=["SECRETop"]),
    Case("HIST-021-computer", "password=SECRETpc/app", "file.read", "a", ok=False, unstored=["SECRETpc"]),
    Case("HIST-036", "exec", "history.timeline", options={"limit": 10**12}, max_ms=30_000, max_growth_mb=64),
    Case("HIST-035", "exec", "history.timeline", input={"query": "^(a+)+$"}, ok=True, max_ms=30_000),
]  # fmt: skip

COMMAND_CASES = [*TEXTS, *ARGVS, *SANDBOX, *RECORDS]

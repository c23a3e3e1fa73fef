"""Git over SSH with a key that no program can read: an agent signs for one host, and for nothing else."""

import asyncio
import json
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from support.ssh_scene import GIT, OTHER, USER, SshHosts, SshScene, ssh_hosts, ssh_scene
from support.sshd import program
from support.waiting import until

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(program() is None or shutil.which("ssh") is None, reason="not installed: openssh"),
]
_BATCH = "-o BatchMode=yes"
_RELAY = """
import os, socket, struct, subprocess, sys, threading
REAL = os.environ["SSH_AUTH_SOCK"]
def taken(sock, count):
    made = b""
    while len(made) < count:
        piece = sock.recv(count - len(made))
        if not piece:
            raise EOFError
        made += piece
    return made
def message(sock):
    return taken(sock, struct.unpack(">I", taken(sock, 4))[0])
def asked(sock, body):
    sock.sendall(struct.pack(">I", len(body)) + body)
    return message(sock)
def connected():
    sock = socket.socket(socket.AF_UNIX); sock.connect(REAL); return sock
def string(data):
    return struct.pack(">I", len(data)) + data
def parts(body):
    found, at = [], 0
    while at + 4 <= len(body):
        size = struct.unpack(">I", body[at:at + 4])[0]; found.append(body[at + 4:at + 4 + size]); at += 4 + size
    return found
seen = []
listener = socket.socket(socket.AF_UNIX); listener.bind("/tmp/relay"); listener.listen(8)
def serve(client):
    real = connected()
    try:
        while True:
            body = message(client); seen.append(body); client.sendall(string(asked(real, body)))
    except (EOFError, OSError):
        pass
def accept():
    while True:
        threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
threading.Thread(target=accept, daemon=True).start()
def session(*command):
    # A session that stays open until its input ends.
    env = {**os.environ, "SSH_AUTH_SOCK": "/tmp/relay"}
    child = subprocess.Popen(["ssh", "-o", "BatchMode=yes", "-p", sys.argv[1], sys.argv[2], *command], env=env,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child.stdout.readline()
    return child
open_session = session("echo in; cat")
bind = next(body for body in seen if body[0] == 27)
sign = next(body for body in seen if body[0] == 13)
key, data = parts(sign[1:])[:2]
"""
"""Runs a real login through a relay that keeps the messages to the agent, while the session stays open."""


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshHosts]:
    with ssh_hosts(tmp_path_factory.mktemp("ssh")) as made:
        yield made


@pytest.fixture
async def scene(tmp_path: Path, hosts: SshHosts) -> AsyncIterator[SshScene]:
    async with ssh_scene(tmp_path, hosts) as made:
        yield made


async def test_git_clones_commits_and_pushes_over_ssh_and_the_history_names_the_key(scene: SshScene) -> None:
    bare = scene.hosts.repository("project")
    done = await scene.sh(
        f"git clone -q {scene.url}{bare} copy && cd copy && echo more > b.txt && git add . && "
        "git -c user.name=t -c user.email=t@example.org commit -qm two && git push -q origin HEAD:main"
    )
    assert done["exitCode"] == 0, done
    assert (scene.road.root / "copy" / "a.txt").read_text() == "here\n"
    log = subprocess.run(["git", "-C", str(bare), "log", "--format=%s"], capture_output=True, text=True, check=True)
    assert log.stdout.split() == ["two", "one"]
    events = (await scene.road.data("history.last", "", options={"limit": 50}))["events"]
    used = [event["summary"] for event in events if event["op"] == "network.connect" and event["ok"]]
    assert {(each["host"], each["secret"]) for each in used} == {(GIT, "deploy")}


async def test_no_file_of_the_sandbox_or_the_scope_has_the_key(scene: SshScene) -> None:
    await scene.sh(f"ssh {_BATCH} -p {scene.hosts.git.port} {USER}@{GIT} true; cp -r /run/computer-linker copied; true")
    found = [path for path in scene.road.root.rglob("*") if path.is_file()]
    assert found and not any(scene.is_leaked(path.read_bytes()) for path in found)
    stored = (path for path in scene.road.home.rglob("*") if path.is_file())
    assert not any(scene.is_leaked(path.read_bytes()) for path in stored)


async def test_a_copy_of_the_key_in_a_file_is_masked_in_every_answer(scene: SshScene) -> None:
    shutil.copy(scene.hosts.key, scene.road.root / "note.txt")
    done = await scene.run("cat", "note.txt")
    assert "[secret deploy]" in done["stdout"]
    read = await scene.road.data("file.read", "note.txt")
    assert scene.is_leaked((scene.road.root / "note.txt").read_bytes())
    assert "[secret deploy]" in read["content"] and not scene.is_leaked(json.dumps(read).encode())


@pytest.mark.parametrize(
    "script",
    [
        "ssh-add -l",
        "ssh-add -L",
        "ssh-keygen -q -t ed25519 -N '' -f new && ssh-add new",
        "ssh-keygen -q -t ed25519 -N '' -f new && ssh-add -t 60 new",
        "ssh-add -D",
        "ssh-add -d public",
        "printf 'pw\\npw\\n' | SSH_ASKPASS=/bin/echo SSH_ASKPASS_REQUIRE=force ssh-add -x",
        "SSH_ASKPASS=/bin/echo SSH_ASKPASS_REQUIRE=force ssh-add -X",
        "ssh-add -e /usr/lib/x.so",
        "ssh-add -T public",
        "echo text > t && ssh-keygen -Y sign -n file -f public t",
        "echo text > t && ssh-keygen -q -t ed25519 -N '' -f new && ssh-keygen -q -s public -U -I x new.pub",
    ],
)
async def test_the_agent_lists_adds_removes_locks_and_signs_nothing(scene: SshScene, script: str) -> None:
    shutil.copy(f"{scene.hosts.key}.pub", scene.road.root / "public")
    shutil.copy(f"{scene.hosts.key}.pub", scene.road.root / "public.pub")
    done = await scene.sh(script)
    assert done["exitCode"] != 0, done
    assert not list(scene.road.root.glob("*.sig")) and not list(scene.road.root.glob("*-cert.pub"))
    login = await scene.sh(f"ssh {_BATCH} -p {scene.hosts.git.port} {USER}@{GIT} echo in")
    assert login["stdout"] == "in\n", login


async def test_another_host_that_would_accept_the_key_gets_no_signature(scene: SshScene) -> None:
    known = "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"
    before = scene.hosts.log(scene.hosts.other).count("Accepted publickey")
    shutil.copy(f"{scene.hosts.key}.pub", scene.road.root / "public.pub")
    for options in ("", "-o IdentitiesOnly=yes -i public.pub", f"-o HostKeyAlias={GIT}"):
        done = await scene.sh(f"ssh {_BATCH} {known} {options} -p {scene.hosts.other.port} {USER}@{OTHER} echo in")
        assert done["exitCode"] != 0 and "in" not in done["stdout"].split(), done
    assert scene.hosts.log(scene.hosts.other).count("Accepted publickey") == before


async def test_a_forwarded_agent_signs_for_no_further_host(scene: SshScene) -> None:
    """The server runs on this machine, so what is run there can reach both servers directly."""
    before = {
        each.folder: scene.hosts.log(each).count("Accepted publickey") for each in (scene.hosts.git, scene.hosts.other)
    }
    onward = " ; ".join(
        f"ssh -F none {_BATCH} -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -p {port} {USER}@127.0.0.1 echo further"
        for port in (scene.hosts.other.port, scene.hosts.git.port)
    )
    done = await scene.sh(f'ssh -A {_BATCH} -p {scene.hosts.git.port} {USER}@{GIT} "echo in; ssh-add -l; {onward}"')
    assert "in\n" in done["stdout"] and "further" not in done["stdout"] and "SHA256" not in done["stdout"], done
    assert "no identities" in done["stdout"], done
    after = {
        each.folder: scene.hosts.log(each).count("Accepted publickey") for each in (scene.hosts.git, scene.hosts.other)
    }
    assert after == {**before, scene.hosts.git.folder: before[scene.hosts.git.folder] + 1}


_PROBES = {
    "the same login": ("data", True),
    "a signature of a file": (
        "b'SSHSIG' + string(b'git') + string(b'') + string(b'sha512') + string(b'x' * 64)",
        False,
    ),
    "any bytes": ("b'x' * 200", False),
    "no bytes": ("b''", False),
    "another user": ("data.replace(string(USER), string(b'somebody'), 1)", False),
    "another session": ("string(b'x' * len(parts(data)[0])) + data[4 + len(parts(data)[0]):]", False),
    "another service": ("data.replace(b'ssh-connection', b'ssh-konnection')", False),
    "another method": ("data.replace(b'publickey', b'hostbased', 1)", False),
    "further bytes": ("data + b'x'", False),
    "another message": ("data[:4 + len(parts(data)[0])] + b'\\x33' + data[5 + len(parts(data)[0]):]", False),
    "another key in it": ("data.replace(key, key[:-1] + bytes([key[-1] ^ 1]))", False),
    "a host key in it that is not the host's": ("data[:-1] + bytes([data[-1] ^ 1])", False),
}


@pytest.mark.parametrize("name", _PROBES)
async def test_in_a_bound_session_only_a_login_is_signed(scene: SshScene, name: str) -> None:
    wanted, is_signed = _PROBES[name]
    code = (
        _RELAY
        + f"""
USER = {USER.encode()!r}
agent = connected()
assert asked(agent, bind) == b"\\6"
print(len(parts(asked(agent, b"\\x0b")[5:])), asked(agent, b"\\x0d" + string(key) + string({wanted}) + b"\\0\\0\\0\\0")[0])
"""
    )
    done = await scene.run("python3", "-c", code, str(scene.hosts.git.port), f"{USER}@{GIT}")
    assert done["stdout"] == f"2 {14 if is_signed else 5}\n", done


async def test_a_key_for_one_user_logs_in_as_that_user_only(tmp_path: Path, hosts: SshHosts) -> None:
    async with ssh_scene(tmp_path, hosts, user="deployer") as scene:
        done = await scene.sh(f"ssh {_BATCH} -p {hosts.git.port} {USER}@{GIT} echo in")
        assert done["exitCode"] != 0 and done["stdout"] == "", done


@pytest.mark.parametrize(
    ("name", "probe"),
    {
        "without a session": "agent = connected()\nprint(asked(agent, b'\\x0b')[1:5], asked(agent, sign)[0])",
        "a second host on one connection": "agent = connected()\nprint(asked(agent, bind)[0], asked(agent, bind)[0], asked(agent, b'\\x0b')[1:5], asked(agent, sign)[0])",
        "a forwarded session": "agent = connected()\nprint(asked(agent, bind[:-1] + b'\\1')[0], asked(agent, b'\\x0b')[1:5], asked(agent, sign)[0])",
        "a session of another number": "agent = connected()\nsid = parts(bind[29:])[1]\nprint(asked(agent, bind.replace(sid, b'x' * len(sid)))[0], asked(agent, sign)[0])",
        "a signature that the host did not make": "agent = connected()\nmade = parts(bind[29:])[2]\nprint(asked(agent, bind.replace(made, made[:-1] + bytes([made[-1] ^ 1])))[0], asked(agent, sign)[0])",
        "a session that is over": "open_session.stdin.close(); open_session.wait()\nimport time\nagent = connected()\nwhile asked(agent := connected(), bind)[0] == 6: pass\nprint(asked(agent, sign)[0])",
        "messages that are malformed": "for body in (b'\\x1b', b'\\x0d\\xff\\xff\\xff\\xff', b'\\x0d', b'\\x1b' + string(b'session-bind@openssh.com') + b'x', b'\\x1b' + string(b'query'), b'\\xff', b'\\x0b' + b'more'):\n    print(asked(connected(), body)[0], end=' ')",
    }.items(),
)  # fmt: skip
async def test_a_session_is_proven_or_nothing_is_signed(scene: SshScene, name: str, probe: str) -> None:
    done = await scene.run("python3", "-c", _RELAY + probe, str(scene.hosts.git.port), f"{USER}@{GIT}")
    expected = {
        "without a session": "b'\\x00\\x00\\x00\\x00' 5",
        "a second host on one connection": "6 5 b'\\x00\\x00\\x00\\x00' 5",
        "a forwarded session": "5 b'\\x00\\x00\\x00\\x00' 5",
        "a session of another number": "5 5",
        "a signature that the host did not make": "5 5",
        "a session that is over": "5",
        "messages that are malformed": "5 5 5 5 5 5 5",
    }
    assert done["stdout"].strip() == expected[name], done


async def test_a_session_that_did_not_go_through_the_gate_is_not_logged_in(scene: SshScene) -> None:
    """The socket is reached from outside the sandbox, as a program could that carries its bytes to another machine."""
    running = asyncio.ensure_future(scene.sh("touch started; while ! test -e enough; do sleep 0.05; done"))
    await until(lambda: (scene.road.root / "started").exists() or running.done())
    (agent,) = (scene.road.home / "ssh-agents").glob("*/agent")
    # A socket's path is limited to a hundred characters.
    short = scene.hosts.folder / "link"
    short.unlink(missing_ok=True)
    short.symlink_to(agent.parent)
    known = scene.hosts.git.known_hosts
    words = ["ssh", "-F", "none", "-o", "BatchMode=yes", "-o", f"UserKnownHostsFile={known}", "-o", "IdentityFile=none"]
    before = scene.hosts.log(scene.hosts.git).count("Accepted publickey")
    done = await asyncio.to_thread(
        subprocess.run,
        [*words, "-p", str(scene.hosts.git.port), f"{USER}@127.0.0.1", "echo", "in"],
        env={**os.environ, "SSH_AUTH_SOCK": str(short / "agent")},
        capture_output=True,
        text=True,
        timeout=60,
    )
    (scene.road.root / "enough").touch()
    await running
    assert done.returncode != 0 and done.stdout == "", done
    assert scene.hosts.log(scene.hosts.git).count("Accepted publickey") == before
    assert not any((scene.road.home / "ssh-agents").iterdir())


async def test_a_removed_key_signs_no_more_also_for_a_running_command(scene: SshScene) -> None:
    login = f"ssh {_BATCH} -p {scene.hosts.git.port} {USER}@{GIT} echo in"
    running = asyncio.ensure_future(
        scene.sh(f"{login}; touch started; while ! test -e go; do sleep 0.05; done; {login}")
    )
    await until(lambda: (scene.road.root / "started").exists() or running.done())
    scene.vault.remove("deploy")
    (scene.road.root / "go").touch()
    done = await running
    assert done["stdout"] == "in\n" and done["exitCode"] != 0, done


async def test_a_host_with_another_key_is_not_logged_in_to(tmp_path: Path, hosts: SshHosts) -> None:
    async with ssh_scene(tmp_path, hosts) as scene:
        stored = scene.vault.known("deploy")
        other = " ".join((hosts.other.folder / "host.pub").read_text().split()[:2])
        scene.vault.add(stored.model_copy(update={"host_keys": [other]}), replace=True)
        for options in (
            "",
            "-o StrictHostKeyChecking=no -o GlobalKnownHostsFile=/dev/null -o UserKnownHostsFile=/dev/null",
        ):
            done = await scene.sh(f"ssh {_BATCH} {options} -p {hosts.git.port} {USER}@{GIT} echo in")
            assert done["exitCode"] != 0 and done["stdout"] == "", done

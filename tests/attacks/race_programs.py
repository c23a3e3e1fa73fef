"""What the commands of the race harness run. Each gets its seed and the places it would like to reach as arguments."""

_COMMON = r"""
import ctypes, json, os, random, re, socket, stat, sys, time
seed, seconds, home, port, *targets = sys.argv[1:]
dice, libc, end = random.Random(seed), ctypes.CDLL(None, use_errno=True), time.monotonic() + float(seconds)
SEEN = re.compile(rb"CANARY:[a-z]+:[0-9a-f]{16}")
def attempt(act, *arguments):
    try:
        return act(*arguments)
    except (OSError, ValueError):
        return None
def exchange(a, b):
    return libc.renameat2(-100, a.encode(), -100, b.encode(), 2)
def some(limit=400):
    found = []
    for place, folders, files in os.walk("."):
        found += [os.path.join(place, name) for name in folders + files]
        if place.count("/") > 3 or len(found) > limit:
            folders.clear()
        if len(found) > limit:
            break
    return found or ["."]
"""

CHURN = (
    _COMMON
    + r"""
def mount(source, place):
    if os.fork() == 0:
        libc.unshare(0x10020000)
        libc.mount(source.encode(), place.encode(), b"", 0x1000, None)
        os._exit(0)
    attempt(os.wait)
def make_socket(place):
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(place)
def change_mode(place, mode):
    # Never through a link: under Landlock nothing holds a change of mode, and the link may lead to this machine's root.
    fd = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    os.fchmod(fd, mode)
    os.close(fd)
number = 0
while time.monotonic() < end:
    names = some()
    for _ in range(60):
        number += 1
        a, b, fresh = dice.choice(names), dice.choice(names), f"c-{seed}-{number}"
        inside = os.path.join(dice.choice([".", os.path.dirname(a), a]), fresh)
        match dice.randrange(13):
            case 0: attempt(os.rename, a, inside)
            case 1: attempt(os.rename, a, os.path.join(b, os.path.basename(a)))
            case 2 | 3: exchange(a, b)
            case 4: attempt(os.link, a, inside)
            case 5: attempt(os.symlink, dice.choice([*targets, "..", "../..", "/"]), inside)
            case 6: attempt(os.mkdir, inside)
            case 7: attempt(os.makedirs, os.path.join(inside, dice.choice([".git/hooks", ".vscode", "node_modules/x", ".env"])))
            case 8: attempt(os.unlink, a) if os.path.basename(a).startswith("c-") else attempt(os.rmdir, a)
            case 9: mount(dice.choice(targets), dice.choice(names))
            case 10: attempt(os.mkfifo, inside)
            case 11: attempt(make_socket, inside)
            case 12: attempt(change_mode, a, dice.choice([0o777, 0o700, 0o755]))
"""
)
"""Rearranges everything it may, at random."""

EXCHANGE = (
    _COMMON
    + r"""
# Folders that look like repositories are closed by mounts of their own; each has a link to swap in while that happens.
folders = [f"c-{seed}-{number}" for number in range(60)]
for folder in folders:
    attempt(os.makedirs, f"{folder}/.git")
    attempt(os.symlink, dice.choice(targets), f"{folder}/c-lnk")
order = [entry.name for entry in os.scandir(".") if entry.name in folders]
first, last = order[:6], order[-3:]
def is_starting():
    return any(os.path.lexists(f"{folder}/.codex") for folder in first)
while time.monotonic() < end:
    # Where a start can be seen it is waited for, a moment at most.
    until = time.monotonic() + dice.uniform(0.02, 0.2)
    while time.monotonic() < until and not is_starting():
        time.sleep(0.0002)
    for folder in last:
        exchange(f"{folder}/.git", f"{folder}/c-lnk")
    time.sleep(dice.uniform(0.03, 0.09))
    for folder in last:
        exchange(f"{folder}/.git", f"{folder}/c-lnk")
    until = time.monotonic() + 1
    while time.monotonic() < until and is_starting():
        time.sleep(0.002)
"""
)
"""Swaps folders that are mounted at a command's start for links out of the scope."""

MOVE = (
    _COMMON
    + r"""

quick = [(".git", "c-git"), (".vscode", "c-vscode"), (".env", "c-env"), (".git/hooks", "c-hooks"), ("sub/.env", "sub/c-env"),
         ("repos/two/.git", "repos/two/git"), ("sub", ".git/sub"), ("inner", "c-inner")]
held = [("sub", "node_modules/sub"), ("repos/one", "node_modules/one"), ("repos", "dist"), ("sub/deep", "c-deep")]
def plant():
    for place in ("c-git", "repos/two/git", ".git", "node_modules/one/.git", "dist/two/.git"):
        attempt(lambda: open(f"{place}/hooks/c-planted", "w").write("planted by a command"))
        attempt(lambda: open(f"{place}/config", "a").write("[core]\n\tfsmonitor = planted"))
    attempt(lambda: open("c-vscode/tasks.json", "w").write("planted by a command"))
def leave(there, back):
    # In a namespace without the mounts that hold a name, through a descriptor from before.
    if os.fork() == 0:
        top = os.open(".", os.O_RDONLY)
        libc.unshare(0x10020000)
        attempt(os.makedirs, "/tmp/c-new/old")
        libc.mount(b"none", b"/", None, 0x44000, None)
        libc.mount(b"/tmp/c-new", b"/tmp/c-new", None, 0x1000, None)
        attempt(os.chdir, "/tmp/c-new")
        libc.pivot_root(b".", b"old")
        libc.umount2(b"/old", 2)
        attempt(lambda: os.rename(there, back, src_dir_fd=top, dst_dir_fd=top))
        os._exit(0)
    attempt(os.wait)
while time.monotonic() < end:
    leave(*dice.choice([*quick, *held]))
    for there, back in dice.sample(quick, 3):
        if attempt(os.rename, there, back) is None and os.path.lexists(back):
            exchange(there, back)
        plant()
        attempt(os.rename, back, there)
    there, back = dice.choice(held)
    attempt(os.rename, there, back)
    plant()
    # Long enough for commands to start meanwhile.
    time.sleep(dice.uniform(0.2, 0.8))
    attempt(os.rename, back, there)
"""
)
"""Moves the folders that hold secrets and protected names, and writes to where they went."""

LOOK = (
    _COMMON
    + r"""
def look(data, where):
    for found in SEEN.findall(data):
        print("FOUND", found.decode(), where)
def read(path):
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        if stat.S_ISREG(os.fstat(fd).st_mode):
            look(os.read(fd, 65536), path)
    finally:
        os.close(fd)
def ask(path):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(0.5)
        s.connect(path)
        call = {"tool": "computer_operation", "arguments": {"scope": "private", "op": "file.read", "target": "key.txt"}}
        s.sendall(b"computer-linker/1 control\n" + json.dumps(call).encode() + b"\n")
        answered(s.recv(65536), path)
def answered(data, where):
    look(data, where)
    if re.search(rb'"ok"\s*:\s*true', data):
        print("OWNER", where)
def ask_http():
    body = json.dumps({"action": "computer_operation", "scope": "private", "op": "file.read", "target": "key.txt"})
    with socket.create_connection(("127.0.0.1", int(port)), 0.5) as s:
        s.sendall(f"POST /api/v1/control HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
                  f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}".encode())
        answered(s.recv(65536), "http")
print("NAMES", json.dumps(sorted(os.listdir("."))))
count = 0
def plant(path):
    with open(path, "w") as file:
        file.write("planted by a command")
for place, folders, files in os.walk(".", followlinks=True):
    if place.endswith((".git/hooks", ".vscode")):
        attempt(plant, place + "/c-planted")
    if place.count("/") > 5:
        folders.clear()
    for name in [*files, *folders]:
        count += 1
        path = os.path.join(place, name)
        attempt(read, path)
        if count < 4000 and attempt(lambda: stat.S_ISSOCK(os.stat(path).st_mode)):
            attempt(ask, path)
    if count > 4000 or time.monotonic() > end:
        break
for target in targets:
    attempt(read, target)
    for name in attempt(os.listdir, target) or []:
        attempt(read, os.path.join(target, name))
    attempt(lambda: open(os.path.join(target, "c-planted"), "w").write("x"))
attempt(ask, home + "/service.sock")
attempt(ask_http)
print("DONE", count)
"""
)
"""Looks at everything it can reach, asks every socket it finds as the owner would, and tries to write outside."""

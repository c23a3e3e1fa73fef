"""What the stand-in programs share. They are told what to do by `standin.json` in the folder they run in.

Every start is noted in `starts.jsonl` there: the arguments, and the names of the environment's variables.
"""

import json
import os
import signal
import socket
import sys
import time
from pathlib import Path


def arguments() -> list[str]:
    """The command line, once it is noted that this program was started."""
    note = {"argv": sys.argv[1:], "env": sorted(os.environ), "pid": os.getpid()}
    with Path("starts.jsonl").open("a") as file:
        file.write(json.dumps(note) + "\n")
    return sys.argv[1:]


def starts() -> int:
    """How often a program was started here, this time included."""
    return len(Path("starts.jsonl").read_text().splitlines())


def mode() -> str:
    """What it is to do; works as the real one would, when nothing is said."""
    try:
        return str(json.loads(Path("standin.json").read_text())["mode"])
    except FileNotFoundError:
        return "works"


def misbehave() -> None:
    """Do wrong at once, when that is what is wanted."""
    match mode():
        case "rubbish":
            sys.stdout.buffer.write(os.urandom(300_000) + b"\nhttps://evil.example\n" + b"A" * 2_000_000)
            sys.stdout.flush()
            stay()
        case "hangs":
            stay()
        case "floods":
            if os.fork() == 0:
                while True:
                    os.write(1, b"x\n" * 32_768)
        case "ends":
            log("ERR it does not work here")
            raise SystemExit(3)
        case "forks":
            # A grandchild in a session of its own, deaf to a gentle word.
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    signal.signal(signal.SIGTERM, signal.SIG_IGN)
                    Path("grandchild.pid").write_text(str(os.getpid()))
                    while True:
                        time.sleep(60)  # it never ends by itself
                os._exit(0)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        case "liar":
            log("ERR see https://evil-host.trycloudflare.com.evil.example for help, or https://x.trycloudflare.com now")
            log("INF Registered tunnel connection connIndex=0")
            stay()


def log(line: str) -> None:
    """A line as the program would log it."""
    print(f"2026-01-02T03:04:05Z {line}", file=sys.stderr, flush=True)


def forward() -> None:
    """Send the bytes in `forward` to the port its first line names, as the real one passes on requests; the answer goes to `answer`."""
    port, _, request = Path("forward").read_bytes().partition(b"\n")
    Path("forward").unlink()
    said = b""
    with socket.create_connection(("127.0.0.1", int(port)), 10) as link:
        link.sendall(request)
        while data := link.recv(65536):
            said += data
    Path("answer.new").write_bytes(said)
    Path("answer.new").rename("answer")


def stay() -> None:
    """Run until ended; say what is in the file `say`, pass on what is in `forward`; after `die` appears in the folder, end by itself."""
    while not Path("die").exists():
        if Path("say").exists():
            log(Path("say").read_text())
            Path("say").unlink()
        if Path("forward").exists():
            forward()
        time.sleep(0.02)  # a program of its own, which runs until it is ended
    Path("die").unlink()
    log("ERR Connection terminated")
    raise SystemExit(1)

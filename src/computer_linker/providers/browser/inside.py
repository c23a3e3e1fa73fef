"""The program beside the browser inside the sandbox. Standard library only: its text is passed to a bare interpreter.

It reads commands for agent-browser from standard input, one JSON line each, and replies likewise. Where there is a proxy, it
listens for the browser on a port that exists only inside the sandbox, and forwards each connection to the proxy's socket. It
exits at the end of its input, and the sandbox ends everything with it.
"""

import json
import os
import socket
import subprocess
import sys
import threading

MAX_OUTPUT = 24 << 20


def carry(source: socket.socket, sink: socket.socket) -> None:
    """Copy bytes in one direction until either side ends."""
    try:
        while piece := source.recv(65536):
            sink.sendall(piece)
    except OSError:
        pass
    for side, how in ((source, socket.SHUT_RD), (sink, socket.SHUT_WR)):
        try:
            side.shutdown(how)
        except OSError:
            pass


def join(browser: socket.socket, gate_path: str) -> None:
    """Forward one connection of the browser to the proxy and back."""
    gate = socket.socket(socket.AF_UNIX)
    try:
        gate.connect(gate_path)
        back = threading.Thread(target=carry, args=(gate, browser), daemon=True)
        back.start()
        carry(browser, gate)
        back.join()
    except OSError:
        pass
    finally:
        gate.close()
        browser.close()


def listen(gate_path: str, port: int) -> None:
    """Accept the browser's connections on a port of this network namespace."""
    listener = socket.create_server(("127.0.0.1", port), backlog=64)

    def accept() -> None:
        while True:
            browser, _ = listener.accept()
            threading.Thread(target=join, args=(browser, gate_path), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()


def answered(program: str, request: dict) -> dict:  # type: ignore[type-arg]  # runs on any interpreter
    """Run agent-browser once."""
    argv = [program, *request["argv"]]
    child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        out, err = child.communicate(request["stdin"].encode(), timeout=request["timeout"])
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
        return {"id": request["id"], "late": True}
    if len(out) > MAX_OUTPUT:
        return {"id": request["id"], "tooLong": True}
    return {
        "id": request["id"],
        "code": child.returncode,
        "out": out.decode("utf-8", "replace"),
        "said": err[-2000:].decode("utf-8", "replace"),
    }


def main(folder: str, gate: str, port: str, program: str) -> None:
    os.chdir(folder)
    if gate != "-":
        listen(gate, int(port))
    for line in sys.stdin.buffer:
        answer = answered(program, json.loads(line))
        sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(*sys.argv[1:5])

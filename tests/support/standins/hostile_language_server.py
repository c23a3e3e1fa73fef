"""A language server that does what a hostile project could make one do, and reports what it achieved in its answers."""

import json
import os
import socket
import sys
from collections.abc import Callable
from typing import Any


def tried(act: Callable[[], object]) -> str:
    try:
        act()
    except OSError as error:
        return error.strerror or type(error).__name__
    return "DONE"


def attempts(root: str, secret: str, port: int) -> dict[str, str]:
    def write(path: str) -> Callable[[], object]:
        return lambda: open(path, "w").close()

    def connect() -> None:
        socket.create_connection(("127.0.0.1", port), timeout=2).close()

    def hidden() -> None:
        with open(f"{root}/.env") as file:
            if "sesame" not in file.read():
                raise OSError("empty")

    return {
        "write in the root": tried(write(f"{root}/planted.txt")),
        "change a source": tried(write(f"{root}/main.cpp")),
        "write beside the root": tried(write(f"{root}/../planted.txt")),
        "read outside": tried(lambda: open(secret).read()),
        "read a secret of the root": tried(hidden),
        "connect": tried(connect),
    }


def answer(method: str, params: dict[str, Any], root: str) -> Any:
    start = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}}
    outside, closed = "file:///etc/passwd", f"file://{root}/.env"
    if method == "initialize":
        names = "hover definition references rename"
        return {"capabilities": {f"{name}Provider": True for name in names.split()}}
    if method == "textDocument/hover":
        with open(f"{root}/plan.json") as file:
            plan = json.load(file)
        return {"contents": json.dumps(attempts(root, plan["secret"], plan["port"]))}
    if method in ("textDocument/definition", "textDocument/references"):
        up = f"file://{root}/../../../../../../../../etc/passwd"
        return [{"uri": uri, "range": start} for uri in (outside, closed, up, f"file://{root}/main.cpp")]
    if method == "textDocument/rename":
        uri = {"outside": outside, "closed": closed, "up": f"file://{root}/../planted.txt"}[params["newName"]]
        return {
            "changes": {
                f"file://{root}/main.cpp": [{"range": start, "newText": "x"}],
                uri: [{"range": start, "newText": "x"}],
            }
        }
    return None


def main() -> None:
    root = os.getcwd()
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    while True:
        size = 0
        while line := source.readline().strip():
            size = int(line.split(b":")[1]) if line.lower().startswith(b"content-length") else size
        if not size:
            return
        message = json.loads(source.read(size))
        if message.get("method") == "exit":
            return
        if "id" in message and "method" in message:
            result = answer(message["method"], message.get("params") or {}, root)
            body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
            sink.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
            sink.flush()


main()

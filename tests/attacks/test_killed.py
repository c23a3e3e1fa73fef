"""A service killed in the middle of a patch of fifty files: after its next start all of them are old, or all are new."""

import json
import random
import socket
import time
from pathlib import Path

import pytest

from support.service import TOKEN, Service, serving

FILES = 50


def patch(turn: int) -> str:
    """Every file from one turn to the next."""
    return "".join(f"--- a/f{n}\n+++ b/f{n}\n@@ -1 +1 @@\n-turn {turn}\n+turn {turn + 1}\n" for n in range(FILES))


def send(service: Service, turn: int) -> socket.socket:
    """Ask for the patch, and do not wait for an answer."""
    call = {"action": "computer_operation", "scope": "app", "op": "file.patch", "input": {"diff": patch(turn)}}
    body = json.dumps(call).encode()
    head = f"POST /api/v1/control HTTP/1.1\r\nHost: 127.0.0.1:{service.port}\r\nAuthorization: Bearer {TOKEN}\r\n"
    link = socket.create_connection(("127.0.0.1", service.port))
    link.sendall(f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
    return link


@pytest.mark.parametrize("kills", [6, pytest.param(200, marks=[pytest.mark.soak, pytest.mark.timeout(3600)])])
def test_all_or_none_and_never_without_a_record(tmp_path: Path, kills: int) -> None:
    """PATCH-030."""
    dice, turn, root = random.Random(20261116), 0, tmp_path / "root"
    root.mkdir()
    for number in range(FILES):
        (root / f"f{number}").write_text("turn 0\n")
    for _ in range(kills):
        with serving(tmp_path, token=TOKEN) as service:
            texts = {(root / f"f{number}").read_text() for number in range(FILES)}
            assert len(texts) == 1 and texts <= {f"turn {turn}\n", f"turn {turn + 1}\n"}, texts
            turn = int(texts.pop().split()[1])
            link = send(service, turn)
            time.sleep(dice.uniform(0.0, 0.12))  # no wait for anything: the moment of death is what is varied
            service.process.kill()
            service.process.wait(10)
            link.close()
    with serving(tmp_path, token=TOKEN) as service:
        texts = {(root / f"f{number}").read_text() for number in range(FILES)}
        assert len(texts) == 1, texts
        owner = service.http()
        events = owner.control("get_operation_history", view="last", limit=500)["events"]
        assert owner.control("get_operation_history", view="verify")["valid"]
        owner.close()
        patches = [event["outcome"] for event in events if event["op"] == "file.patch"]
        assert len(patches) >= int(texts.pop().split()[1]) and set(patches) <= {"done", "unknown"}
    assert sorted(path.name for path in root.iterdir()) == sorted(f"f{number}" for number in range(FILES))

"""A short life of the history, through new segments, its index and a prune; tells what it acknowledged, and how many calls it took."""

import os
import sys
from pathlib import Path

import anyio

sys.path.insert(0, str(Path(__file__).parent.parent))

from computer_linker.audit.faults import AuditDamaged, AuditUnavailable
from computer_linker.audit.prune import prune
from computer_linker.audit.store import AuditStore
from computer_linker.audit.views import answer
from support.events import event


def say(text: str) -> None:
    os.write(1, f"{text}\n".encode())


async def steps(folder: Path) -> None:
    store = AuditStore(folder)
    store.journal.segment_bytes = 1200
    for number in range(6):
        made = event("file.write", f"file{number}.txt", ok=None)
        try:
            store.intent(made)
            await store.durable()
            say(f"intent {made.operation_id}")
            made.ok = True
            await store.outcome(made)
            say(f"outcome {made.operation_id}")
            looked = event("file.read", f"file{number}.txt")
            await store.record(looked)
            say(f"outcome {looked.operation_id}")
        except AuditUnavailable:
            say("refused")
    try:
        await answer(store, view="last", visible=None)
        prune(folder, max_bytes=1 << 30)
    except (AuditUnavailable, OSError):
        say("no answer")
    await store.aclose()


if __name__ == "__main__":
    try:
        anyio.run(steps, Path(sys.argv[1]))
    except AuditDamaged as damage:
        say(f"stopped {damage.message}")

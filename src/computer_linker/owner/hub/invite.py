"""hub.invite: an invitation file for one machine."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from anyio import to_thread
from pydantic import Field

from computer_linker.errors import AlreadyExists, ExecutionFailed
from computer_linker.registry.owner import (
    Context,
    Effect,
    Example,
    LocalPath,
    Model,
    Named,
    Note,
    Positional,
    Shown,
    owner_operation,
)
from computer_linker.service.fleet import FleetManager
from computer_linker.system import os, sync


class InviteInput(Model):
    name: Annotated[str, Field(description="The machine's name."), Positional()]
    out: Annotated[
        str,
        Field(description="Where to write the invitation; only you may read it."),
        LocalPath(),
        Named(metavar="FILE"),
    ]


class Invited(Model):
    file: str
    url: str
    name: str


def _text(result: Invited) -> Iterator[Shown]:
    yield result.file
    yield Note(f"On {result.name}, with this file: computer-linker join --creds {Path(result.file).name} --allow SCOPE")


@owner_operation(
    "hub.invite",
    did="invited the machine {name}",
    effect=Effect.CHANGE,
    where="service",
    text=_text,
    examples=[Example("Invite a laptop.", {"input": {"name": "laptop", "out": "/home/me/laptop.json"}}, runs=False)],
)
async def hub_invite(ctx: Context, input: InviteInput) -> Invited:
    """Invite a machine: a file that lets it in, once, and proves both sides to each other."""
    path = Path(input.out)
    fleet = ctx.use(FleetManager)
    ctx.note(name=input.name[:40], file=path.name)
    # Before the invitation exists: one that cannot be handed over is not created.
    handle = _new_file(path)
    try:
        invitation = await fleet.invite(input.name)
        await to_thread.run_sync(_write, handle, json.dumps(invitation, indent=1).encode("ascii"))
    except BaseException:
        os.unlink(path)  # a file of ours, and no wait
        raise
    finally:
        os.close(handle)
    ctx.note(server=invitation["url"])
    ctx.effect = "confirmed" if fleet.is_invited(invitation["seat"]) else "partial"
    return Invited(file=str(path), url=invitation["url"], name=input.name)


def _write(handle: int, raw: bytes) -> None:
    """Write it and read it back. Raises ExecutionFailed when the file does not have these bytes."""
    try:
        os.write(handle, raw)
        sync(handle)
        if os.pread(handle, len(raw) + 1, 0) == raw:
            return
        problem: str | None = "only a part of it is there"
    except OSError as error:
        problem = error.strerror
    raise ExecutionFailed(f"The invitation cannot be written: {problem}.")


def _new_file(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise AlreadyExists(f"{path} is there already; it is left as it is.") from None
    except OSError as error:
        raise ExecutionFailed(f"{path} cannot be written: {error.strerror}.") from error

"""sandbox.check: which kernel boundary holds around commands, proved by trying to cross it."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from computer_linker.computer.local.probe import this_computer
from computer_linker.providers.sandbox.boundary import NO_BOUNDARY, Kind
from computer_linker.providers.sandbox.measure import measured
from computer_linker.providers.sandbox.sandbox import Sandbox, available_kinds
from computer_linker.registry.owner import Context, Effect, Example, Model, Shown, Table, owner_operation

_HELD = Field(description="Each thing that was tried from inside, and whether the boundary held it; measured on Linux.")


class Crossed(Model):
    held: Annotated[dict[str, bool], _HELD]


class BoundaryReport(Crossed):
    kind: Kind
    holds: bool
    files: bool
    network: bool
    processes: bool
    protected_names: bool
    detail: str


class SandboxReport(Model):
    used: str
    boundaries: list[BoundaryReport]
    none: Annotated[Crossed, Field(description="The same without a boundary.")]


def _text(result: SandboxReport) -> Iterator[Shown]:
    rows = [
        (
            one.kind,
            *(_word(holds) for holds in (one.files, one.network, one.processes, one.protected_names)),
            one.detail,
        )
        for one in result.boundaries
    ]
    yield Table(rows, ("boundary", "files", "network", "processes", "protected names", "how it was found out"))
    yield (f"commands use: {result.used}" if result.used != "none" else "commands use no boundary: install bubblewrap")


def _word(holds: bool) -> str:
    return "held" if holds else "open"


@owner_operation(
    "sandbox.check",
    effect=Effect.OBSERVE,
    where="terminal",
    text=_text,
    exit_code=lambda result: 1 if result.used == "none" else 0,
    deadline_s=None,
    examples=[Example("Does the boundary hold here?", {}, runs=False)],
)
async def sandbox_check(ctx: Context) -> SandboxReport:
    """Try to cross the boundary: read, write, connect, signal and plant from inside. Exit code 1 when none holds.

    With `--json` on Linux, `held` also says of each boundary, and of none, what SECURITY.md's table says of it.
    """
    computer, home = this_computer(), ctx.services.home
    kinds = available_kinds(computer)
    # What is measured needs the launcher, which is Linux's.
    is_measured = "bubblewrap" in kinds
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    found: list[BoundaryReport] = []
    try:
        for kind in kinds:
            sandbox = Sandbox(computer, home, kinds=(kind,))
            boundary = await sandbox.probe()
            held = await measured(sandbox, boundary) if boundary.holds and is_measured else {}
            await sandbox.aclose()
            found.append(
                BoundaryReport(
                    kind=kind,
                    holds=boundary.holds,
                    files=boundary.files,
                    network=boundary.network,
                    processes=boundary.processes,
                    protected_names=boundary.protected,
                    detail=boundary.detail,
                    held=held,
                )
            )
        sandbox = Sandbox(computer, home, kinds=())
        without = await measured(sandbox, NO_BOUNDARY) if is_measured else {}
        await sandbox.aclose()
    finally:
        await computer.aclose()
    used = next((one.kind for one in found if one.holds), "none")
    return SandboxReport(used=used, boundaries=found, none=Crossed(held=without))

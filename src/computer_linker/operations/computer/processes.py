"""computer.processes: the processes that run on this computer."""

from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import Field

from computer_linker.computer.facets.processes import Process
from computer_linker.errors import PermissionDenied
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation

_MOST = 5000


class ProcessesOptions(Model):
    name_contains: Annotated[str | None, Field(max_length=200, description="Only programs whose name has this.")] = None
    own_only: Annotated[bool, Field(description="Only those of the user that this service runs as.")] = False
    max_results: Annotated[int, Field(gt=0, description="At most 5000.")] = 1000


class RunningProcesses(Model):
    processes: Annotated[list[Process], Field(description="By pid. Arguments are never shown: they may hold secrets.")]
    truncated: bool


@operation(
    "computer.processes",
    did="listed the programs of this computer",
    needs={Capability.PROCESS_OBSERVE},
    effect=Effect.OBSERVE,
    on="computer",
    deadline_s=20,
    facets=("facts",),
    examples=[Example("Is the database running?", {"options": {"nameContains": "postgres"}}, runs=False)],
)
async def computer_processes(ctx: Context, options: ProcessesOptions = ProcessesOptions()) -> RunningProcesses:
    """List what runs on this computer: name, parent, start, memory and time. command.list has what you started yourself."""
    policy = ctx.scope.policy
    if not policy.allow_processes:
        raise PermissionDenied(f"Scope {ctx.scope.id} does not show processes.", rule="allowProcesses")
    wanted = (options.name_contains or "").lower()
    found = [
        process
        for process in await ctx.computer.facts.processes()
        if wanted in process.name.lower()
        and (process.is_own or not options.own_only)
        and not any(fnmatchcase(process.name.lower(), pattern.lower()) for pattern in policy.excluded_applications)
    ]
    most = min(options.max_results, _MOST)
    ctx.note(processes=len(found))
    return RunningProcesses(processes=found[:most], truncated=len(found) > most)

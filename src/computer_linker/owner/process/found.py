"""Finds a process or an agent session of any client by the beginning of its id."""

from computer_linker.errors import ProcessNotFound
from computer_linker.providers.agents.agents import Agents
from computer_linker.providers.agents.sessions import Session
from computer_linker.providers.processes.managed import Managed
from computer_linker.providers.processes.table import ProcessTable
from computer_linker.registry.owner import Context


def beginning(ctx: Context, text: str) -> Managed | Session:
    """What has this id or this beginning of one. Raises ProcessNotFound for none, several, and a process whose output is gone."""
    table = ctx.use(ProcessTable)
    sessions = [one for one in ctx.use(Agents).every() if text and one.session_id.startswith(text)]
    processes = [one for one in table.every() if text and one.process_id.startswith(text)]
    if len(sessions) == 1 and not processes:
        return sessions[0]
    if sessions:
        raise ProcessNotFound(
            f"more than one process begins with {text[:40]!r}", hint="computer-linker process list shows them"
        )
    return table.beginning(text)

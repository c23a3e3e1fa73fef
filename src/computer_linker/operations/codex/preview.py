"""The approval preview of an agent's turn: the agent, its folder, its permissions, and its instruction files."""

from typing import TYPE_CHECKING

from computer_linker.approvals.request import Preview
from computer_linker.changes.fingerprints import Fingerprints
from computer_linker.errors import LinkError
from computer_linker.policy.digest import digest_of_parts
from computer_linker.registry import Context

if TYPE_CHECKING:
    from computer_linker.operations.codex.request import AgentInput, AgentOptions

_INSTRUCTIONS = ("AGENTS.md", "AGENTS.override.md", "CLAUDE.md", "CLAUDE.local.md", ".mcp.json")
_MAX_LINES = 200


def prompt_lines(prompt: str) -> list[str]:
    """The lines of a prompt, marked: none can pass for a line of the service's own."""
    lines = prompt.splitlines()
    left = len(lines) - _MAX_LINES
    more = [f"… {left} more lines; all of it is in the exact request below."] if left > 0 else []
    return [*(f"| {line}" for line in lines[:_MAX_LINES]), *more]


async def show_turn(
    ctx: Context, input: "AgentInput", target: str = ".", options: "AgentOptions | None" = None
) -> Preview:
    """The requested turn. The prompt itself is in the request."""
    from computer_linker.operations.codex.request import found
    from computer_linker.providers.agents.order import mode_for

    mode = mode_for(ctx.scope, ctx.principal, input.workflow, None if options is None else options.sandbox)
    session = None if input.session_id is None else found(ctx, input.session_id)[0]
    agent = input.agent or ("codex" if session is None else session.agent)
    cwd = ctx.path((target if session is None else session.target) or ".")
    prints = Fingerprints(ctx.computer.files)
    prints.lines.append(f"{agent} works in {cwd.shown}, {mode}, workflow {input.workflow}, on this prompt:")
    prints.lines += prompt_lines(input.prompt)
    prints.holds["order"] = digest_of_parts(agent, mode, cwd.shown)
    if session is not None:
        prints.lines.append(f"It goes on with the session {session.session_id}.")
        prints.holds["session"] = digest_of_parts(session.session_id, str(session.thread_id))
    for name in _INSTRUCTIONS:
        try:
            await prints.add_file(cwd.child(name), "is instructed by")
        except LinkError:
            continue
    # A yes to turns of this kind covers no other agent and no wider mode.
    kinds = frozenset({f"starts {agent} {mode} with any prompt"})
    return Preview(tuple(prints.lines), prints.holds, paths=(cwd.shown,), kinds=kinds)

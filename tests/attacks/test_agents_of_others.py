"""An agent's own record of a conversation belongs to the principal that had it, as the session does."""

from dataclasses import replace
from pathlib import Path

import pytest

from support.agents_road import AGENTS, agent_road, command
from support.road import LOCAL

pytestmark = pytest.mark.anyio
WORD = "zwiebelfisch"
STRANGER = replace(LOCAL, id="oauth:other", proof="oauth", session="session-2", connection="connection-2")


@pytest.mark.parametrize("agent", AGENTS)
async def test_an_agent_reads_nothing_of_what_another_principal_told_it(tmp_path: Path, agent: str) -> None:
    places = f'"$CODEX_HOME" "$CLAUDE_CONFIG_DIR" /var/tmp/codex-home-* {tmp_path}/home'
    # In two parts, or it would find the record of this very command.
    look = f'grep -rla {WORD[:6]}""{WORD[6:]} {places} > found.txt 2> /dev/null; echo looked >> found.txt'
    async with agent_road(tmp_path, agent, {"say": "first"}) as (road, model):
        await road.data("codex.run", ".", input={"prompt": f"The word is {WORD}.", "agent": agent})
        model.steps[:] = [command(agent, look), {"say": "second"}]
        await road.data("codex.run", ".", input={"prompt": "look", "agent": agent}, principal=STRANGER)
        assert (road.root / "found.txt").read_text() == "looked\n"

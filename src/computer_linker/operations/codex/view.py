"""The view that an agent works in, and its difference as agents report theirs."""

from anyio.to_thread import run_sync

from computer_linker.operations.command.view import CommandView
from computer_linker.providers.agents.sessions import ChangedFile, DiffSummary
from computer_linker.providers.views.changes import Action
from computer_linker.providers.views.reading import ViewReader
from computer_linker.registry import Context

_MAX_LISTED = 500
_MAX_PROMPT = 200
_ACTIONS: dict[Action, str] = {"added": "added", "removed": "deleted", "changed": "modified", "renamed": "modified"}


class AgentView(CommandView):
    """The view of one turn."""

    async def difference(self) -> tuple[DiffSummary, str] | None:
        """What the view would change, and the diff; None for a turn that has no view."""
        if self._view is None:
            return None
        reader = ViewReader.of(self._ctx, self._view)
        found = await self.changes()
        texts = await run_sync(reader.differences, found[:_MAX_LISTED])
        listed = zip(found, texts, strict=False)
        files = [
            ChangedFile(
                path=path.shown,
                action=_ACTIONS[change.action],  # type: ignore[arg-type]  # the three that a turn reports
                insertions=text.additions,
                deletions=text.deletions,
                binary=text.lines is None,
            )
            for (path, change), text in listed
        ]
        summary = DiffSummary(
            changed_files=len(found),
            insertions=sum(each.insertions for each in files),
            deletions=sum(each.deletions for each in files),
            files=files,
            truncated=len(found) > len(files),
        )
        await self.drop_empty()
        return summary, "".join("".join(text.lines or ()) for text in texts)


def agent_view(ctx: Context, wanted: bool | str, agent: str, prompt: str) -> AgentView | None:
    """The view to work in; None where the caller wants none and the scope's policy asks for none."""
    if not wanted and ctx.scope.policy.outcome == "direct":
        return None
    return AgentView(ctx, wanted, [agent, prompt[:_MAX_PROMPT]])

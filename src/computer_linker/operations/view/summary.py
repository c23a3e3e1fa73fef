"""What a view would change, for the person who decides: how much, what it reached, what is left out, and each change."""

from collections import Counter
from collections.abc import Mapping
from functools import partial

from anyio.to_thread import run_sync

from computer_linker.audit.store import AuditStore
from computer_linker.model.paths import RootedPath
from computer_linker.policy.visible_text import escaped
from computer_linker.providers.views.changes import Action, ViewChange
from computer_linker.providers.views.hosts import Reached, reached_by
from computer_linker.providers.views.keeping import never_kept
from computer_linker.providers.views.merging import MergedText
from computer_linker.providers.views.preview import previewed
from computer_linker.providers.views.reading import ViewReader, leads_out
from computer_linker.providers.views.store import View, Views
from computer_linker.registry import Context

Found = list[tuple[RootedPath, ViewChange]]
_MAX_NAMED = 50
_ACTIONS: tuple[Action, ...] = ("added", "changed", "removed", "renamed")


async def summarised(
    ctx: Context,
    reader: ViewReader,
    found: Found,
    chosen: Found,
    merges: Mapping[RootedPath, MergedText],
    *,
    is_asked: bool = False,
) -> list[str]:
    """The lines for a person: of all that was found the names that are left out, of the chosen each change.

    Raises LimitExceeded where a person `is_asked` about more than can be shown.
    """
    reached = await run_sync(reached_by, ctx.use(AuditStore), reader.view)
    closed = await run_sync(never_kept, found)
    links = await run_sync(links_out, reader, chosen)
    lines = [_counted(chosen)]
    lines += _network(reader.view, reached)
    program = ctx.use(Views).program_of(reader.view.id)
    lines += [escaped(f"still runs: {program}")] if program else ["left running: no process"]
    lines += _named("leads out of the scope", [f"{path} -> {target}" for path, target in links])
    lines += _named("never put in place", [_reason(path.shown, why) for path, why in closed.items()])
    return [*lines, *await run_sync(partial(previewed, reader, chosen, merges, is_asked=is_asked))]


def _network(view: View, reached: Reached) -> list[str]:
    """What its programs could do beyond the folder, which neither keeping nor dropping takes back."""
    if view.network == "closed":
        return ["network: closed to it"]
    if view.network == "open":
        return ["network: open to it, so the hosts it connected to are not known"]
    if view.network is None and not reached.hosts:
        return ["network: not known"]
    lines = [f"connected to {', '.join(reached.hosts)}"] if reached.hosts else ["connected to no host"]
    return lines + ([f"tried and was refused: {', '.join(reached.refused)}"] if reached.refused else [])


def links_out(reader: ViewReader, found: Found) -> list[tuple[str, str]]:
    """The links among these that lead out of the scope, with where they lead."""
    links = [(path, change) for path, change in found if change.after is not None and change.after.kind == "symlink"]
    targets = ((path, detail.link_target) for (path, _), detail in zip(links, reader.details(links), strict=True))
    return [(path.shown, target) for path, target in targets if target is not None and leads_out(path, target)]


def _counted(found: Found) -> str:
    count = Counter(change.action for _, change in found)
    size = sum(change.after.size for _, change in found if change.after is not None and change.after.kind == "file")
    return f"{', '.join(f'{count[action]} {action}' for action in _ACTIONS)}; its files have {size} bytes"


def _reason(path: str, why: str) -> str:
    return why if why.startswith(path) else f"{path}: {why}"


def _named(what: str, items: list[str]) -> list[str]:
    more = [f"{what}: {len(items) - _MAX_NAMED} more"] if len(items) > _MAX_NAMED else []
    return [escaped(f"{what}: {item}") for item in items[:_MAX_NAMED]] + more

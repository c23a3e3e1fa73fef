"""A process does not outlive the rights it was started with: what the owner takes reaches what already runs."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from computer_linker.audit.history import every_event
from computer_linker.audit.query import Filter
from computer_linker.audit.store import AuditStore
from computer_linker.providers.processes.table import ProcessTable
from computer_linker.service.app import open_app
from computer_linker.service.settings import live_config
from support.road import Road, folder_scope
from support.service import write_config
from support.waiting import until, until_awaited

pytestmark = pytest.mark.anyio
Change = Callable[[dict[str, Any]], object]


def _without(*names: str) -> Change:
    def change(scope: dict[str, Any]) -> None:
        scope["capabilities"] = [name for name in scope["capabilities"] if name not in names]

    return change


def _policy(**fields: Any) -> Change:
    return lambda scope: scope["policy"].update(fields)


@asynccontextmanager
async def configured(tmp_path: Path, **policy: Any) -> AsyncIterator[tuple[Road, Callable[..., None]]]:
    """A service whose config is a file, and what writes that file anew."""
    home, root = tmp_path / "home", tmp_path / "root"

    def write(*changes: Change, others: tuple[dict[str, Any], ...] = ()) -> None:
        scope = folder_scope(root, allowedCommands=["*"], network=True, **policy)
        scope["roots"] = [str(root), str(tmp_path / "second")]
        for change in changes:
            change(scope)
        write_config(home, root, token="owner-token-0123456789abcdef", scopes=[scope, *others])

    (tmp_path / "second").mkdir()
    write()
    async with open_app(home, live_config(home)) as app:
        yield Road(app, root, home), write


async def _status(road: Road, process: str, scope: str = "app") -> str:
    read = await road.data("command.list", scope=scope)
    return next(str(one["status"]) for one in read["processes"] if one["processId"] == process)


async def _ended(road: Road, process: str) -> None:
    async def has_ended() -> bool:
        return await _status(road, process) != "running"

    await until_awaited(has_ended)


@pytest.mark.parametrize(
    "change",
    [
        _without("command:run"),
        _without("fs:write"),
        _without("fs:read", "fs:write"),
        _policy(network=False),
        lambda scope: scope["roots"].pop(),
    ],
    ids=["run", "write", "read", "network", "root"],
)
async def test_a_process_ends_with_a_right_that_it_was_started_with(tmp_path: Path, change: Change) -> None:
    async with configured(tmp_path) as (road, write):
        started = await road.data("command.start", "@0", input={"command": ["sleep", "600"]})
        write(change)
        await _ended(road, started["processId"])
        store = road.app.services.use(AuditStore)

        def ends() -> list[Any]:
            store.index.catch_up()
            return [event["summary"] for event in every_event(store, Filter()) if event["op"] == "principal.end"]

        assert await until(ends) == [{"ended": 1, "scope": "app"}]


async def test_a_scope_that_is_removed_takes_its_processes_along(tmp_path: Path) -> None:
    other = folder_scope(tmp_path / "second", "other", allowedCommands=["*"])
    async with configured(tmp_path) as (road, write):
        write(others=(other,))
        process = (await road.data("command.start", "@0", input={"command": ["sleep", "600"]}))["processId"]
        kept = await road.data("command.start", ".", scope="other", input={"command": ["sleep", "600"]})
        write(lambda scope: scope.update(id="renamed"), others=(other,))
        table = road.app.services.use(ProcessTable)
        await until(lambda: next(one for one in table.every() if one.process_id == process).status != "running")
        assert await _status(road, kept["processId"], "other") == "running"


async def test_a_command_under_way_ends_too(tmp_path: Path) -> None:
    async with configured(tmp_path) as (road, write), anyio.create_task_group() as group:
        marker, answer = tmp_path / "root" / "began", dict[str, Any]()

        async def run() -> None:
            answer.update(
                await road.call("command.run", "@0", input={"command": ["sh", "-c", "touch began; sleep 600"]})
            )

        group.start_soon(run)
        await until(marker.exists)
        write(_without("command:run"))
        await until(lambda: answer)
        assert answer["data"]["signal"] == "SIGKILL"


async def test_a_change_that_takes_nothing_leaves_it_running(tmp_path: Path) -> None:
    async with configured(tmp_path) as (road, write):
        process = (await road.data("command.start", "@0", input={"command": ["sleep", "600"]}))["processId"]
        write(_without("git:write"), _policy(maxRuntimeSeconds=600, confirm="never"))
        # A second process whose end shows that the config has been compared since.
        write(
            _without("git:write"),
            _policy(maxRuntimeSeconds=600),
            lambda scope: scope["capabilities"].append("history:all"),
        )
        marked = (await road.data("command.start", "@0", input={"command": ["sleep", "1"]}))["processId"]
        await _ended(road, marked)
        assert await _status(road, process) == "running"

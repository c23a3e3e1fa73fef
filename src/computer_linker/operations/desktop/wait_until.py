"""desktop.wait_until: wait for something to show, to go, or for quiet."""

import time
from typing import Annotated

from pydantic import Field

from computer_linker.operations.desktop.acting import ExecutionId, execution
from computer_linker.providers.refs import References
from computer_linker.providers.ui.outline import Node
from computer_linker.providers.ui.route import Route
from computer_linker.providers.ui.waiting import Condition, Waiting
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation

_MAX_ELEMENTS = 10


class WaitInput(Model):
    condition: Condition


class WaitOptions(Model):
    timeout_seconds: Annotated[float, Field(gt=0, le=300)] = 15
    execution_id: ExecutionId = None


class Waited(Model):
    matched: Annotated[int, Field(description="How many elements or windows fit when the condition held.")]
    elapsed_ms: float
    elements: list[Node]
    execution_id: str


@operation(
    "desktop.wait_until",
    did="waited for the desktop",
    needs={Capability.DESKTOP_OBSERVE},
    effect=Effect.OBSERVE,
    on="computer",
    deadline_s=None,
    facets=("accessibility",),
    aliases=("desktop.waitUntil",),
    examples=[
        Example(
            "Wait for a dialog's button.",
            {
                "input": {"condition": {"selectorExists": {"role": "button", "name": "OK"}}},
                "options": {"timeoutSeconds": 5},
            },
            runs=False,
        )
    ],
)
async def desktop_wait_until(
    ctx: Context, input: WaitInput, target: str | Route | None = None, options: WaitOptions = WaitOptions()
) -> Waited:
    """Wait until an element shows or goes, a text appears, a window has a title, or nothing changes any more."""
    seconds = min(options.timeout_seconds, ctx.scope.policy.max_runtime_seconds)
    started = time.perf_counter()
    async with execution(ctx, options.execution_id) as name:
        waiting = Waiting(ctx.computer, ctx.scope, ctx.use(References), target, input.condition)
        outcome = await waiting.until(seconds)
        lines = (outcome.lines or [])[:_MAX_ELEMENTS]
        return Waited(
            matched=outcome.matched,
            elapsed_ms=round((time.perf_counter() - started) * 1000, 1),
            elements=[] if outcome.view is None else outcome.view.nodes(lines),
            execution_id=name,
        )
    raise AssertionError("an ended execution raises")

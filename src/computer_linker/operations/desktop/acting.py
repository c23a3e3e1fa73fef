"""What every act shares: its options, its reply, and how it is run, observed and read back."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Annotated, Any

from pydantic import Field

from computer_linker.errors import Conflict, ElementNotFound, InvalidRequest
from computer_linker.model.base import Model, Older
from computer_linker.model.effect import Known
from computer_linker.providers.refs import References
from computer_linker.providers.shots import Frames
from computer_linker.providers.ui.aim import Aim, AimAt, Aiming
from computer_linker.providers.ui.executions import Executions
from computer_linker.providers.ui.pointing import area_of
from computer_linker.providers.ui.presses import Presses
from computer_linker.providers.ui.restless import Restless
from computer_linker.providers.ui.route import Route, follow, is_in_front
from computer_linker.providers.ui.witness import Witness, evidence_of, witness
from computer_linker.registry import Context

ExecutionId = Annotated[
    str | None,
    Field(min_length=1, max_length=64, description="A name of your own for this execution, for desktop.abort."),
]


class ActOptions(Model):
    verify: Annotated[bool, Field(description="Read the effect back; without it the effect is unverifiable.")] = True
    execution_id: ExecutionId = None


class ActInput(Model):
    target: Annotated[AimAt | None, Older(), Field(description="What to act on, when `target` does not say it.")] = None
    confirm: Annotated[
        dict[str, Any] | None,
        Older(),
        Field(description="{token}, where a client does not send it in the envelope's confirm."),
    ] = None
    route: Annotated[
        Route | str | None, Field(description="Without a target: where the keyboard must be; elsewhere is refused.")
    ] = None


class ActedOn(Model):
    """The element an act was for."""

    ref: str | None
    role: str
    name: str


class Acted(Model):
    delivered: Annotated[
        bool, Field(description="The input was handed over; `effect` says what is known of its effect.")
    ]
    method: Annotated[str, Field(description="action, set_text, paste, keys or pointer.")]
    execution_id: str
    element: Annotated[ActedOn | None, Field(description="What it was for; null for a bare point.")] = None


def aiming_of(ctx: Context) -> Aiming:
    """The resolver of this request's target."""
    return Aiming(ctx.computer, ctx.scope, ctx.use(References), ctx.use(Frames), ctx.use(Presses))


def aim_at(target: str | AimAt | None, given: AimAt | None, *, needed: bool = True) -> AimAt | str | None:
    """The target of the request, from the one place where it is given."""
    if target is not None and given is not None:
        raise InvalidRequest("Give the target once, in `target` or in `input.target`.")
    found = given if target is None else target
    if found is None and needed:
        raise InvalidRequest("A target is needed: a ref, a selector, or a point in a frameId.", field="target")
    if isinstance(found, str) and not 0 < len(found) <= 40:
        raise InvalidRequest("`target` is not a reference.", field="target")
    return found


async def check_keyboard(ctx: Context, aim: Aim | None, route: Route | str | None) -> None:
    """Refuse keys that would be sent to another application than the request names.

    Raises:
        Conflict: the keyboard focus is elsewhere.
    """
    if route is None:
        return
    try:
        place = await follow(ctx.computer, ctx.scope, route)
    except ElementNotFound:
        # A terminal, say: it describes nothing, and its window can have the keyboard all the same.
        if not await is_in_front(ctx.computer, route):
            raise
        return
    pid = None if aim is None or aim.app is None else aim.app.pid
    if pid is None and ctx.computer.capabilities().has("windows"):
        front = await ctx.computer.windows.focused()
        pid = None if front is None else front.pid
    is_active = place.window is None or "active" in place.window.states
    if pid is None or pid != place.app.pid or not is_active:
        raise Conflict("The keyboard is in another window than the route says. Click into that one first.")


@asynccontextmanager
async def execution(ctx: Context, execution_id: str | None) -> AsyncIterator[str]:
    """Run the body as an execution that desktop.abort can end."""
    name = execution_id or ctx.operation_id
    with ctx.use(Executions).running(name, ctx.scope.id, ctx.principal.id):
        yield name


@asynccontextmanager
async def act(ctx: Context, options: ActOptions) -> AsyncIterator[tuple[str, Witness]]:
    """Run an act as an execution, with a witness that listens from the start."""
    async with (
        execution(ctx, options.execution_id) as name,
        witness(ctx.computer, ctx.use(Restless), wanted=options.verify) as watch,
    ):
        yield name, watch


async def read_back(ctx: Context, watch: Witness, options: ActOptions) -> Known:
    """Return the effect word, and warn when the application no longer responds."""
    known: Known = await watch.verdict() if options.verify else "unverifiable"
    is_silent = watch.app is not None and not await ctx.computer.accessibility.is_alive(watch.app)
    if is_silent and await watch.is_running():
        ctx.warn("The application has stopped answering. It may be showing a dialog that blocks it, or hang.")
        known = "unverifiable"
    ctx.effect = known
    return known


def acted(ctx: Context, name: str, method: str, aim: Aim | None) -> Acted:
    """The reply of an act; the audit gets the method, never what was typed."""
    one = None if aim is None else aim.element
    ctx.note(method=method, role=None if one is None else one.role)
    on = None if aim is None or one is None else ActedOn(ref=aim.ref, role=one.role, name=aim.name[:200])
    return Acted(delivered=True, method=method, execution_id=name, element=on)


async def by_aim(
    ctx: Context,
    target: str | AimAt | None,
    input: ActInput,
    options: ActOptions,
    do: Callable[[Aiming, Aim, Witness], Awaitable[str]],
) -> Acted:
    """Act on the request's target, observed and read back; `do` returns the method it used."""
    at = aim_at(target, input.target)
    aiming = aiming_of(ctx)
    async with act(ctx, options) as (name, watch):
        assert at is not None
        aim = await aiming.take(at)
        method = await do(aiming, aim, watch)
        await read_back(ctx, watch, options)
        return acted(ctx, name, method, aim)
    raise AssertionError("an ended execution raises")


# Sending keys: what desktop.press and desktop.hotkey share.


async def strike(
    ctx: Context, keys: Sequence[str], count: int, target: str | AimAt | None, input: ActInput, options: ActOptions
) -> Acted:
    """Press keys at the focus, or in an element after focusing it, and read back the effect."""
    at = aim_at(target, input.target, needed=False)
    aiming = aiming_of(ctx)
    async with act(ctx, options) as (name, watch):
        aim = await aiming.focused() if at is None else await aiming.take(at)
        if at is not None and aim is not None:
            if aim.element is None:
                raise Conflict("Keys go to an element or to the focus, not to a point. Click the point first.")
            await aiming.give_focus(aim)
        await watch.begin(
            None, None if aim is None else aim.app_id, None if aim is None else await area_of(aiming, aim)
        )
        if options.verify and aim is not None and aim.element is not None:
            watch.evidence = await evidence_of(ctx.computer.accessibility, aim.element, keys)
        # The watch took a moment to begin, in which a window that opened may have taken the keyboard.
        await aiming.refuse_refocused(aim, is_target=at is not None)
        if at is None:
            await check_keyboard(ctx, aim, input.route)
        await ctx.computer.keyboard.press(keys, count=count)
        await read_back(ctx, watch, options)
        return acted(ctx, name, "keys", aim)
    raise AssertionError("an ended execution raises")

"""browser.check: switch a box, switch or radio button of the open page on or off."""

from functools import partial
from typing import Annotated

from pydantic import Field

from computer_linker.errors import Conflict
from computer_linker.operations.browser.acting import PageActed, PageActOptions, acted, aimed, page_act
from computer_linker.operations.browser.preview import show_page_act
from computer_linker.providers.browser.page import look
from computer_linker.registry import Context, Example, Model

_BOXES = frozenset({"checkbox", "switch", "menuitemcheckbox"})
_RADIOS = frozenset({"radio", "menuitemradio"})


class CheckInput(Model):
    checked: Annotated[bool, Field(description="What it shall be; one that is so already is left alone.")] = True


def _can_be_set(role: str, input: CheckInput) -> None:
    if role not in _BOXES | _RADIOS:
        raise Conflict(f"A {role} can be neither on nor off.", role=role)
    if role in _RADIOS and not input.checked:
        raise Conflict("A radio button goes off when another of its group goes on. Check that one.", role=role)


@page_act(
    "browser.check",
    "ticked a box in the browser",
    Example("Agree to the terms.", {"target": "e7.k3f9"}, runs=False),
    shows=partial(show_page_act, fits=_can_be_set),
)
async def browser_check(
    ctx: Context, target: str, input: CheckInput = CheckInput(), options: PageActOptions = PageActOptions()
) -> PageActed:
    """Switch a box, switch or radio button on or off, by its reference from browser.snapshot, and read it back."""
    verb = "check" if input.checked else "uncheck"
    async with aimed(ctx, verb, target, options) as aim:
        role = aim.on.role
        _can_be_set(role, input)
        (enabled,) = await aim.session.ask(("is", "enabled", aim.at))
        if enabled.get("enabled") is False or "disabled" in aim.before.seen[aim.at[1:]].element.states:
            raise Conflict("The element is disabled.", role=role)
        _, now = await aim.session.ask((verb, aim.at), ("is", "checked", aim.at))
        is_so = now.get("checked") is input.checked
        ctx.effect = ("confirmed" if is_so else "suspected_noop") if options.verify else "unverifiable"
        return await acted(ctx, aim, await look(aim.session, ctx.scope), options)
    raise AssertionError("the body returns")

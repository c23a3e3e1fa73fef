"""browser.select: choose options of a list on the open page."""

from functools import partial
from typing import Annotated

from pydantic import Field

from computer_linker.errors import Conflict, NotFound
from computer_linker.model.effect import Known
from computer_linker.operations.browser.acting import Aim, PageActed, PageActOptions, acted, aimed, page_act
from computer_linker.operations.browser.preview import show_page_act
from computer_linker.providers.browser.page import Page, focus, look
from computer_linker.registry import Context, Example, Model

_LISTS = frozenset({"combobox", "listbox"})


class SelectInput(Model):
    options: Annotated[
        list[Annotated[str, Field(max_length=1000)]],
        Field(
            min_length=1, max_length=100, description="The labels of the options to choose, as the snapshot shows them."
        ),
    ]


def _is_list(role: str, _input: SelectInput) -> None:
    if role not in _LISTS:
        raise Conflict(f"A {role} is no list of options.", role=role)


@page_act(
    "browser.select",
    "chose an option in the browser",
    Example("Choose a size.", {"target": "e7.k3f9", "input": {"options": ["Large"]}}, runs=False),
    shows=partial(show_page_act, fits=_is_list),
)
async def browser_select(
    ctx: Context, target: str, input: SelectInput, options: PageActOptions = PageActOptions()
) -> PageActed:
    """Choose one option of a list, or several where it takes several, by the list's reference from browser.snapshot.

    A label that is not in the list is refused, and so is a list that a page made up itself: click its options instead.
    `effect` is `confirmed` when exactly these options are selected afterwards.
    """
    async with aimed(ctx, "select", target, options) as aim:
        _is_list(aim.on.role, input)
        await _refuse(aim, input.options)
        await aim.session.ask(("select", aim.at, *input.options))
        after = await look(aim.session, ctx.scope)
        ctx.effect = _known(aim, after, input.options) if options.verify else "unverifiable"
        ctx.note(options=len(input.options))
        return await acted(ctx, aim, after, options)
    raise AssertionError("the body returns")


async def _refuse(aim: Aim, wanted: list[str]) -> None:
    found = await focus(aim.session, aim.at)
    if found.tag != "SELECT" or found.is_fixed:
        raise Conflict("The element is no list of options that can be chosen from now.", role=aim.on.role)
    if len(set(wanted)) > 1 and not found.is_multiple:
        raise Conflict("The list takes one option only.")
    labels = [name for name, _is_on in _options(aim, aim.before)]
    if missing := [label for label in wanted if label not in labels]:
        raise NotFound("The list has no such option.", missing=missing[:10], options=labels[:50])


def _options(aim: Aim, page: Page) -> list[tuple[str, bool]]:
    """The options of the list and whether each is selected: the deeper nodes that follow it in the outline."""
    found: list[tuple[str, bool]] = []
    depth: int | None = None
    for ref, one in page.seen.items():
        if depth is not None and one.depth <= depth:
            break
        if depth is not None and one.element.role == "option":
            found.append((one.element.name, "selected" in one.element.states))
        if ref == aim.at[1:]:
            depth = one.depth
    return found


def _known(aim: Aim, after: Page, wanted: list[str]) -> Known:
    chosen = [name for name, is_on in _options(aim, after) if is_on]
    return "confirmed" if sorted(chosen) == sorted(set(wanted)) else "partial"

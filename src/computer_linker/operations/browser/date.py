"""browser.date: set a date or time field of the open page."""

import json
import re
from typing import Annotated

from pydantic import Field

from computer_linker.errors import Conflict, InvalidRequest
from computer_linker.operations.browser.acting import PageActed, PageActOptions, acted, aimed, page_act
from computer_linker.providers.browser.page import focus, look
from computer_linker.registry import Context, Example, Model

_VALUE = re.compile(r"(?:\d{4}-(?:\d\d(?:-\d\d(?:T\d\d:\d\d(?::\d\d)?)?)?|W\d\d))|\d\d:\d\d(?::\d\d)?")
_SET = """(value => {
  const a = document.activeElement;
  const was = a.value;
  Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set.call(a, value);
  if (a.value === '' && value !== '') {
    Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set.call(a, was);
    return 'refused';
  }
  for (const kind of ['input', 'change']) a.dispatchEvent(new Event(kind, {bubbles: true}));
  return a.value;
})(%s)"""


class DateInput(Model):
    value: Annotated[
        str,
        Field(
            max_length=30, description="As 2026-11-16, 13:45, 2026-11-16T13:45, 2026-11 or 2026-W47; empty clears it."
        ),
    ]


@page_act(
    "browser.date",
    "chose a date in the browser",
    Example("Set a day.", {"target": "e7.k3f9", "input": {"value": "2026-11-16"}}, runs=False),
)
async def browser_date(
    ctx: Context, target: str, input: DateInput, options: PageActOptions = PageActOptions()
) -> PageActed:
    """Set a date, time, week or month field of the open page, by the reference of any of its parts, and read it back.

    The snapshot shows such a field as parts (Month, Day, Year); each of them stands for the whole field.
    """
    if input.value and not _VALUE.fullmatch(input.value):
        raise InvalidRequest("Write it as 2026-11-16, 13:45, 2026-11-16T13:45, 2026-11 or 2026-W47.", field="value")
    async with aimed(ctx, "fill", target, options) as aim:
        found = await focus(aim.session, aim.at)
        if not found.is_date:
            raise Conflict("The element is no date or time field that can be set now.", role=aim.on.role)
        (answer,) = await aim.session.ask(("eval", _SET % json.dumps(input.value)))
        if answer.get("result") == "refused":
            raise InvalidRequest(f"The {found.type} field takes no such value.", field="value")
        (now,) = await aim.session.ask(("eval", "document.activeElement.value"))
        is_so = now.get("result") == input.value
        ctx.effect = ("confirmed" if is_so else "partial") if options.verify else "unverifiable"
        return await acted(ctx, aim, await look(aim.session, ctx.scope), options)
    raise AssertionError("the body returns")

"""browser.fill: put text into a field of the open page."""

from functools import partial
from typing import Annotated

from pydantic import Field

from computer_linker.errors import Conflict, PermissionDenied
from computer_linker.model.effect import Known
from computer_linker.operations.browser.acting import Aim, PageActed, PageActOptions, acted, aimed, page_act
from computer_linker.operations.browser.preview import show_page_act
from computer_linker.providers.browser.page import Focus, focus, look
from computer_linker.providers.browser.secret_field import put_secret
from computer_linker.providers.browser.session import text_in
from computer_linker.registry import Context, Example, Model
from computer_linker.vault.typed import SecretText, allowed_secret
from computer_linker.vault.vault import Vault

_MAY_TAKE_TEXT = frozenset({"textbox", "searchbox", "spinbutton", "combobox", "listbox"})
_OTHERS = {
    "checkbox": "browser.check",
    "radio": "browser.check",
    "switch": "browser.check",
    "button": "browser.click, or browser.upload for a file",
}


class FillInput(Model):
    text: Annotated[
        Annotated[str, Field(max_length=100_000)] | SecretText,
        Field(
            description="What the field shall hold; of a choice, the option's label; of a password, also a stored secret."
        ),
    ]


def _takes_text(role: str, _input: FillInput) -> None:
    if role not in _MAY_TAKE_TEXT:
        other = _OTHERS.get(role)
        raise Conflict(f"A {role} takes no text." + (f" Use {other}." if other else ""), role=role)


@page_act(
    "browser.fill",
    "filled a field in the browser[ with the secret {secret}]",
    Example("Fill in a name.", {"target": "e7.k3f9", "input": {"text": "Ada"}}, runs=False),
    shows=partial(show_page_act, fits=_takes_text),
)
async def browser_fill(
    ctx: Context, target: str, input: FillInput, options: PageActOptions = PageActOptions()
) -> PageActed:
    """Replace what a field of the open page holds, or choose an option, by its reference from browser.snapshot, and read it back.

    What takes no text (a button, a box, a file, a read-only field) is refused before anything is typed; see browser.select,
    browser.check, browser.date and browser.upload. The text is neither in the history nor in the answer. `effect` is
    `confirmed` when the field holds exactly the text, and `partial` when the page made something else of it. A secret is put only
    into a password field of a page of its own origin; no recording runs then, and no picture is taken of a page that shows it.
    """
    async with aimed(ctx, "fill", target, options) as aim:
        _takes_text(aim.on.role, input)
        if isinstance(input.text, SecretText):
            await _put_secret(ctx, aim, input.text)
            ctx.note(secret=input.text.secret)
            ctx.effect = "confirmed"
        else:
            verb = await _verb(aim)
            await aim.session.ask((verb, aim.at, input.text))
            ctx.effect = await _known(aim, input.text, verb) if options.verify else "unverifiable"
            ctx.note(characters=len(input.text))
        return await acted(ctx, aim, await look(aim.session, ctx.scope), options)
    raise AssertionError("the body returns")


async def _put_secret(ctx: Context, aim: Aim, asked: SecretText) -> None:
    """Put a secret into this field. From then on the browser makes no picture that shows it, and no recording.

    Raises:
        PermissionDenied: the scope may not use it, or it is not for this page.
        Conflict: the field is no password field or too short, or a recording runs.
    """
    stored = allowed_secret(ctx.services, ctx.scope, asked)
    if (await focus(aim.session, aim.at)).type != "password":
        raise Conflict("A secret is put only into a password field.", role=aim.on.role)
    if aim.session.running:
        raise Conflict(
            f"A recording runs, which would hold the secret: {', '.join(aim.session.running)}. Stop it first."
        )
    elsewhere = PermissionDenied(
        f"The secret is for {stored.origin}, and the page is not of that origin.", rule="secrets"
    )
    (where,) = await aim.session.ask(("get", "url"))
    if not stored.is_for_page(text_in(where, "url")):
        raise elsewhere
    vault = ctx.use(Vault)
    aim.session.hide(lambda shown: vault.mask.may_be_in(shown.encode("utf-8", "replace")))
    (done,) = await aim.session.ask(("eval", put_secret(stored.origin, stored.value)))
    match done.get("result"):
        case "put":
            return
        case "elsewhere":
            raise elsewhere
        case "cut":
            raise Conflict("The field does not take the whole secret, so it was emptied.", role=aim.on.role)
        case _:
            raise Conflict("The password field has lost the focus, so nothing was put into it.", role=aim.on.role)


async def _verb(aim: Aim) -> str:
    """`fill` for a field that has the keyboard focus, `select` for a list of options.

    Raises:
        Conflict: the element accepts neither.
    """
    role = aim.on.role
    found: Focus = await focus(aim.session, aim.at)
    if found.tag == "SELECT" and not found.is_fixed:
        return "select"
    if not found.takes_text:
        hint = " Use browser.date." if found.is_date else ""
        raise Conflict(f"The {role} takes no text now.{hint}", role=role)
    return "fill"


async def _known(aim: Aim, text: str, verb: str) -> Known:
    """Read back the element: its value, of a choice also its label, of editable text that text."""
    value, shown = await aim.session.ask(("get", "value", aim.at), ("get", "text", aim.at))
    if verb == "select":
        page = await look(aim.session, aim.scope)
        now = page.seen.get(aim.at[1:])
        return (
            "confirmed" if text in (value.get("value"), now.element.value if now is not None else None) else "partial"
        )
    return "confirmed" if text in (value.get("value"), shown.get("text")) else "partial"

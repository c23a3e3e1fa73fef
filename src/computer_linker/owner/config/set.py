"""config.set: change one setting."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from computer_linker.registry.cli_options import read_value
from computer_linker.registry.owner import Context, Effect, Example, Model, Note, Positional, Shown, owner_operation
from computer_linker.service.changing_config import change_config

Setting = Literal["machineName", "host", "port", "publicBaseUrl", "ownerToken", "approvalPage"]


class SetInput(Model):
    name: Annotated[Setting, Field(description="Which setting."), Positional()]
    value: Annotated[str, Field(description="Its value: text, or JSON such as 4000, true or null."), Positional()]


class SettingChanged(Model):
    name: Setting
    after_restart: Annotated[bool, Field(description="True when it holds after the service's next start.")]


def _text(result: SettingChanged) -> Iterator[Shown]:
    yield Note(f"Set {result.name}." + (" It holds after the service's next start." if result.after_restart else ""))


def _close_pages(ctx: Context) -> None:
    """Close what is open: it stays closed when the page is switched on again."""
    from computer_linker.transports.http.approval_page import ApprovalPage

    if (page := ctx.services.peek(ApprovalPage)) is not None:
        page.close(None)


@owner_operation(
    "config.set",
    did="changed the config {change}",
    effect=Effect.CHANGE,
    needs_setup=True,
    text=_text,
    examples=[Example("Another port.", {"input": {"name": "port", "value": "4000"}})],
)
async def config_set(ctx: Context, input: SetInput) -> SettingChanged:
    """Change one setting. Scopes are changed with `scope edit`."""
    given = input.value if input.name == "machineName" else read_value(input.value)

    def edit(document: dict[str, Any]) -> None:
        document[input.name] = given

    ctx.note(setting=input.name)
    await change_config(ctx, edit)
    if input.name == "approvalPage":
        _close_pages(ctx)
    return SettingChanged(name=input.name, after_restart=input.name in ("host", "port"))

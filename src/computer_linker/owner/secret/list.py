"""secret.list: what is stored, without values."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from computer_linker.registry.owner import Context, Effect, Example, Model, Note, Shown, Table, owner_operation
from computer_linker.vault.vault import Place, Vault


class ShownSecret(Model):
    name: str
    place: Annotated[str, Field(description="The origin or program it is for.")]
    headers: list[str]
    variable: str
    has_authority: Annotated[bool, Field(description="True when the host's certificate must be signed by given ones.")]
    scopes: Annotated[list[str], Field(description="The scopes whose programs may use it.")]


class SecretList(Model):
    secrets: list[ShownSecret]
    key_in: Place


def _text(result: SecretList) -> Iterator[Shown]:
    if not result.secrets:
        yield Note("No secret is stored. Add one: computer-linker secret add NAME --for HOST")
        return
    rows = [
        (each.name, each.place, ", ".join(each.headers), each.variable, ", ".join(each.scopes) or "-")
        for each in result.secrets
    ]
    yield Table(rows, ("name", "for", "header", "variable", "scopes"))


@owner_operation(
    "secret.list", effect=Effect.OBSERVE, text=_text, examples=[Example("What is stored.", {}, runs=False)]
)
async def secret_list(ctx: Context) -> SecretList:
    """List the stored secrets: names, hosts, header fields and variables, never values."""
    vault = ctx.use(Vault)
    found = [
        ShownSecret(
            name=each.name,
            place=each.place,
            headers=each.headers,
            variable=each.variable,
            has_authority=each.authority is not None,
            scopes=[scope.id for scope in ctx.services.config.scopes if each.name in scope.policy.secrets],
        )
        for each in vault.all
    ]
    return SecretList(secrets=found, key_in=vault.place)

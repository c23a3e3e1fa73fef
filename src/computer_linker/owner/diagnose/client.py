"""diagnose.client: which hop between a client and this service does not work."""

from collections.abc import Iterator
from typing import Annotated

from anyio import to_thread
from pydantic import Field

from computer_linker.client.socket_client import running_url
from computer_linker.errors import InvalidRequest, NotFound
from computer_linker.registry.owner import (
    Context,
    Effect,
    Example,
    Model,
    Note,
    Positional,
    Shown,
    Table,
    owner_operation,
)
from computer_linker.service.client_setup import public_address
from computer_linker.service.connector.diagnosis import Diagnosis, diagnosis_of

_MARKS = {True: "ok", False: "error", None: "left out"}


class DiagnoseInput(Model):
    url: Annotated[
        str | None, Field(description="Another address of this service; its own when left out."), Positional()
    ] = None
    public: Annotated[bool, Field(description="Go by the public address of the config.")] = False


def _text(result: Diagnosis) -> Iterator[Shown]:
    yield result.url
    yield Table([(_MARKS[step.ok], step.hop, step.detail) for step in result.steps])
    if result.refused:
        yield "refused lately: " + ", ".join(f"{count} x {reason}" for reason, count in result.refused.items())
    for warning in result.warnings:
        yield Note(f"slow: {warning}")
    yield Note(f"{result.hop} fails. {result.remedy}" if result.hop else "No hop fails.")


@owner_operation(
    "diagnose.client",
    effect=Effect.OBSERVE,
    where="terminal",
    text=_text,
    exit_code=lambda result: 1 if result.hop else 0,
    deadline_s=None,
    examples=[Example("Why does a client not connect?", {}, runs=False)],
)
async def diagnose_client(ctx: Context, input: DiagnoseInput = DiagnoseInput()) -> Diagnosis:
    """Play a connector's steps one by one: name, connection, TLS, OAuth, MCP; ends non-zero when a hop fails."""
    config, home = ctx.services.config, ctx.services.home
    url = public_address(config) if input.public else input.url
    if input.public and url is None:
        raise NotFound("there is no public address", hint="computer-linker config set publicBaseUrl https://...")
    if url is not None and not url.startswith(("http://", "https://")):
        raise InvalidRequest("an address begins with http:// or https://")
    return await to_thread.run_sync(lambda: diagnosis_of(config, home, running_url(home), url))

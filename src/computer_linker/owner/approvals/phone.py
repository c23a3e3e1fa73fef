"""approvals.phone: a one-time link to the approval page."""

import sys
from collections.abc import Iterator
from io import StringIO
from typing import Annotated

from pydantic import Field

from computer_linker.errors import ProviderUnavailable
from computer_linker.extras import remedy
from computer_linker.registry.owner import Context, Effect, Example, Model, Note, Shown, owner_operation


class PhoneLink(Model):
    url: Annotated[str, Field(description="It opens the page once.")]
    expires_in_seconds: int
    only_here: Annotated[bool, Field(description="True when only this machine reaches the address.")]


def _text(result: PhoneLink) -> Iterator[Shown]:
    yield from _picture(result.url)
    yield result.url
    minutes = result.expires_in_seconds // 60
    yield Note(f"It opens once, within {minutes} minutes. Anyone who opens it can answer for you.")
    if result.only_here:
        yield Note(
            "Only this machine reaches that address. For a phone, serve the page on your network too: "
            "computer-linker stop, then computer-linker serve --host 0.0.0.0"
        )


def _picture(url: str) -> Iterator[Shown]:
    """The link as a QR code, where the terminal and an optional package allow it."""
    try:
        import segno
    except ImportError:
        yield Note(f"There is no picture to scan without another package. {remedy('phone')}")
        return
    if sys.stdout.isatty():
        drawn = StringIO()
        segno.make_qr(url, error="m").terminal(out=drawn, compact=True)
        yield drawn.getvalue().rstrip("\n")


@owner_operation(
    "approvals.phone",
    did="made a link to the approval page",
    effect=Effect.CHANGE,
    where="service",
    text=_text,
    examples=[Example("Make a link for a phone.", {}, runs=False)],
)
async def approvals_phone(ctx: Context) -> PhoneLink:
    """Make a link that opens the approval page once, for a phone on the same network."""
    from computer_linker.transports.http.approval_page import LINK_S
    from computer_linker.transports.http.own_address import is_loopback
    from computer_linker.transports.http.server import HttpServer

    if not ctx.services.config.approval_page:
        raise ProviderUnavailable("The approval page is off.", hint="computer-linker config set approvalPage true")
    server = ctx.services.peek(HttpServer)
    url = None if server is None else server.approval_link("phone")
    if url is None:
        raise ProviderUnavailable("The page needs the HTTP service.", hint="computer-linker serve --host ADDRESS")
    ctx.effect = "confirmed"
    return PhoneLink(url=url, expires_in_seconds=int(LINK_S), only_here=is_loopback(url))

"""Makes the approval request of a call: bound to its caller and bytes, with its text, its preview and its picture."""

import time
from dataclasses import replace

import anyio
from anyio import to_thread

from computer_linker.approvals.request import ApprovalRequest, Preview
from computer_linker.approvals.standing import policy_of, rest_of
from computer_linker.model.envelope import Call
from computer_linker.model.ids import new_handle
from computer_linker.model.principal import Principal
from computer_linker.model.scope import Rights, Scope
from computer_linker.policy.digest import canonical_request, digest_of
from computer_linker.policy.visible_text import client_label, escaped, preview, quoted_client
from computer_linker.vault.mask import Mask
from computer_linker.vault.vault import Vault

_PICTURE_S = 3.0
_LONG = 100_000
"""Requests from this many bytes on are rendered in a worker thread."""


def new_request(call: Call, op: Rights, scope: Scope, who: Principal, ttl_s: float) -> tuple[ApprovalRequest, bytes]:
    """The approval request of a call, its text not yet rendered, and the canonical bytes of the call."""
    canonical = canonical_request(call.scope, op.name, call.target, call.input, call.options)
    digest, now = digest_of(canonical), time.monotonic()
    principal, session, connection = who.bound
    asked = ApprovalRequest(
        id=new_handle("ask"),
        op=op.name,
        scope=call.scope,
        digest=digest,
        preview="",
        principal=principal,
        session=session,
        connection=connection,
        # A client names itself: its name must not be able to paint over what a person is shown.
        client=None if who.client is None else client_label(who.client),
        asked_at=now,
        expires_at=now + ttl_s,
        policy=policy_of(scope, who),
        is_forwarded=who.is_forwarded,
        consented_as=None if who.consented_as is None else quoted_client(who.consented_as),
    )
    return asked, canonical


async def show(
    asked: ApprovalRequest, call: Call, canonical: bytes, about: Preview | None, vault: Vault | None = None
) -> ApprovalRequest:
    """The request with all of it as text, and its preview. In both, the secrets of `vault` are replaced by their names."""
    is_long = len(canonical) > _LONG
    asked.preview = (
        await to_thread.run_sync(preview, canonical, asked.digest) if is_long else preview(canonical, asked.digest)
    )
    if call.batch:
        about = replace(
            about or Preview(()), lines=(*map(escaped, call.batch), *(() if about is None else about.lines))
        )
    asked.about, asked.rest = about, rest_of(call, () if about is None else about.argv)
    if vault is not None and (mask := vault.mask):
        await to_thread.run_sync(_mask, asked, mask) if len(asked.text) > _LONG else _mask(asked, mask)
    return asked


def _mask(asked: ApprovalRequest, mask: Mask) -> None:
    """Mask the text of a request. What a yes is held to, and what stands, are the request itself."""
    asked.preview = mask.masked_text(asked.preview)
    if asked.about is not None:
        # As one text: a secret may be broken into lines.
        text = "\n".join(asked.about.lines)
        if (masked := mask.masked_text(text)) is not text:
            asked.about = replace(asked.about, lines=tuple(masked.split("\n")))


async def take_picture(asked: ApprovalRequest) -> None:
    """Add a picture of where it would act, for a person to see."""
    if asked.about is not None and asked.about.photograph is not None:
        with anyio.move_on_after(_PICTURE_S):
            asked.picture = await asked.about.photograph()

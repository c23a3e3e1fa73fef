"""confirm.issue: a token for one exact request, good once a person has approved it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from computer_linker.approvals.approvals import Approvals
from computer_linker.approvals.request import Preview
from computer_linker.errors import InvalidRequest
from computer_linker.model.envelope import Call, with_its_token
from computer_linker.policy.engine import judge, refuse
from computer_linker.registry import Context, Effect, Example, Model, operation
from computer_linker.registry.catalog import Catalog
from computer_linker.registry.operation import Operation

Name = Annotated[str, Field(min_length=1, max_length=64)]


class Intent(Model):
    """The request as the desktop bridge's clients say it: one object of parameters."""

    method: Name
    params: dict[str, Any] = {}


class IssueInput(Model):
    op: Annotated[Name | None, Field(description="The operation that the token will allow.")] = None
    target: Any = None
    input: dict[str, Any] | None = None
    options: dict[str, Any] | None = None
    intent: Annotated[
        Intent | None, Field(description="Instead of the others: {method, params}, params being the input and options.")
    ] = None

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        others = (self.op, self.target, self.input, self.options)
        if (self.op is None) == (self.intent is None) or (self.intent and any(other is not None for other in others)):
            raise ValueError("give `op` with target, input and options, or `intent` alone")
        return self

    def call(self, scope: str) -> Call:
        """The call that the token is bound to."""
        if self.intent is None:
            return with_its_token(Call(scope, self.op or "", self.target, self.input, self.options))
        params = {name: value for name, value in self.intent.params.items() if name not in ("meta", "confirm")}
        options = params.pop("options", None)
        return Call(scope, self.intent.method, None, params or None, options)


class IssueOptions(Model):
    ttl_seconds: Annotated[int, Field(ge=1, le=600, description="How long the token can be approved and used.")] = 60


class IssuedToken(Model):
    token: Annotated[str, Field(description="Send it as confirm.token with exactly the same request.")]
    approval_id: Annotated[str, Field(description="What a person sees in `computer-linker approvals`.")]
    expires_at: str
    digest: Annotated[str, Field(description="SHA-256 of the canonical request the token is bound to.")]
    approved: bool


@operation(
    "confirm.issue",
    did="asked for an approval[ of {confirms}]",
    effect=Effect.OBSERVE,
    on="any",
    examples=[
        Example(
            "Ask for a token to delete one file.",
            {"input": {"op": "file.delete", "target": "old.txt"}, "options": {"ttlSeconds": 60}},
        )
    ],
)
async def confirm_issue(ctx: Context, input: IssueInput, options: IssueOptions = IssueOptions()) -> IssuedToken:
    """Get a one-use token for exactly one request with a side effect. A person must approve it before it is worth anything."""
    wanted = input.call(ctx.scope.id)
    op = ctx.services.use(Catalog).find(wanted.op)
    if op.effect is Effect.OBSERVE and op.makes is None:
        raise InvalidRequest(f"{op.name} changes nothing, so it needs no confirmation.")
    refuse(judge(ctx.scope, op, ctx.principal), op)
    about = await _about(ctx, op, wanted)
    token, asked = await ctx.use(Approvals).issue(wanted, op, ctx.scope, ctx.principal, options.ttl_seconds, about)
    ctx.note(confirms=op.name, digest=asked.digest[:16])
    expires = datetime.now(UTC) + timedelta(seconds=options.ttl_seconds)
    return IssuedToken(
        token=token,
        approval_id=asked.id,
        expires_at=expires.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        digest=asked.digest,
        approved=False,
    )


async def _about(ctx: Context, op: Operation, wanted: Call) -> Preview | None:
    """What a person is shown of the request; of a batch, all its steps. Raises InvalidRequest where none of them needs a yes."""
    seen = replace(ctx, cwd=op.cwd_in(wanted.options))
    arguments = op.parse(wanted.target, wanted.input, wanted.options)
    if op.makes is None:
        return await op.preview(seen, arguments)
    about = await ctx.about_steps(ctx, op.makes(seen, **arguments))
    if about is None:
        raise InvalidRequest(f"No call of this {op.name} needs a yes, so it needs no confirmation.")
    return about

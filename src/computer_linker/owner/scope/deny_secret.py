"""scope.deny_secret: one secret less that programs of a scope may use."""

from computer_linker.owner.scope.allow_secret import Policy, SecretInput, Secrets, change_secrets, text_of
from computer_linker.registry.owner import Context, Effect, Example, owner_operation


@owner_operation(
    "scope.deny_secret",
    did="took the secret {secret} from the scope {scope}",
    effect=Effect.CHANGE,
    needs_setup=True,
    text=text_of,
    examples=[Example("Take a token back.", {"input": {"scope": "app", "secret": "api-token"}}, runs=False)],
)
async def scope_deny_secret(ctx: Context, input: SecretInput) -> Secrets:
    """Take a secret back from the commands of a scope, also from those that run. Their hosts stay allowed."""

    def denied(policy: Policy) -> Policy:
        left = [name for name in policy.get("secrets", []) if name != input.secret]
        return {**policy, "secrets": left} if "secrets" in policy else policy

    return await change_secrets(ctx, input, denied)

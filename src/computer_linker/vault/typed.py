"""A secret in the place of a text to type: `{"secret": "NAME"}`."""

from typing import Annotated

from pydantic import Field

from computer_linker.errors import PermissionDenied
from computer_linker.model.base import Model
from computer_linker.model.scope import Scope
from computer_linker.services import Services
from computer_linker.vault.secret import NAME_PATTERN, StoredSecret
from computer_linker.vault.vault import Vault


class SecretText(Model):
    """The name of a stored secret, whose value is typed and never shown."""

    secret: Annotated[str, Field(pattern=NAME_PATTERN, description="A secret that the owner stored and allows here.")]


def secret_lines(services: Services, input: object) -> tuple[str, ...]:
    """What an approver is shown of the secret that a request types; empty where it types none."""
    asked = getattr(input, "text", None)
    if not isinstance(asked, SecretText):
        return ()
    found = services.use(Vault).find(asked.secret)
    return (f"types the secret {asked.secret}, which is for {'nothing here' if found is None else found.place}",)


def allowed_secret(services: Services, scope: Scope, asked: SecretText) -> StoredSecret:
    """The secret, where the scope may use it. Raises PermissionDenied, also where there is none of this name."""
    found = services.use(Vault).find(asked.secret) if asked.secret in scope.policy.secrets else None
    if found is None:
        raise PermissionDenied(
            f"This scope may not use a secret {asked.secret!r}. "
            f"The owner can allow it: computer-linker scope allow-secret {scope.id} {asked.secret}",
            rule="secrets",
        )
    return found

"""secret.add: store a secret for one host."""

import re
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pydantic import Field

from computer_linker.errors import Conflict, InvalidRequest
from computer_linker.owner.secret.remove import granted
from computer_linker.providers.processes.environment import TAKES_OVER
from computer_linker.registry.owner import (
    Context,
    Effect,
    Example,
    LocalPath,
    Model,
    Named,
    Note,
    Positional,
    Secret,
    Shown,
    owner_operation,
)
from computer_linker.service.ssh_hosts import fingerprint, recorded_keys
from computer_linker.vault.secret import NAME_PATTERN, Origin, StoredSecret, check_value, origin_of
from computer_linker.vault.ssh_key import canonical_key
from computer_linker.vault.vault import Place, Vault

_OWN_VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]{0,127}$"
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")


class AddInput(Model):
    name: Annotated[str, Field(pattern=NAME_PATTERN, description="A name of your choice."), Positional()]
    origin: Annotated[
        str | None,
        Field(
            description="The host it is for, as HOST or HOST:PORT, by https; http://localhost:PORT for pages; "
            "ssh://USER@HOST for a private key.",
            max_length=300,
        ),
        Named("--for"),
    ] = None
    app: Annotated[
        str | None,
        Field(description="The program into whose password fields desktop.type_text may type it.", max_length=200),
    ] = None
    header: Annotated[
        list[str],
        Field(description="A header field it may stand in; can be given again. Default: Authorization.", max_length=10),
    ] = []
    env: Annotated[
        str | None,
        Field(
            description="The variable that has its placeholder. Default: the name in capitals.", pattern=_OWN_VARIABLE
        ),
    ] = None
    ca: Annotated[
        str | None,
        Field(description="A file of certificates (PEM) that sign the host's own, for a private host."),
        LocalPath(),
    ] = None
    host_key: Annotated[
        str | None,
        Field(description="A file with the public keys of an SSH host. Default: what your known_hosts has of it."),
        LocalPath(),
    ] = None
    replace: Annotated[bool, Field(description="Store it in the place of one of the same name.")] = False
    value: Annotated[
        str,
        Field(description="The secret; without this option it is asked for.", repr=False),
        Named("--value-file"),
        Secret(),
    ] = "-"


class Added(Model):
    name: str
    place: Annotated[str, Field(description="The origin or program it is for.")]
    headers: list[str]
    variable: str
    host_keys: Annotated[list[str], Field(description="Fingerprints of the SSH host's keys.")] = []
    key_in: Annotated[Place, Field(description="Where the key of the encrypted file is.")]


def _text(result: Added) -> Iterator[Shown]:
    if result.host_keys:
        yield f"Stored {result.name}: an agent signs with it for {result.place}, whose keys are:"
        yield from (f"  {each}" for each in result.host_keys)
    else:
        yield f"Stored {result.name}: for {result.place}, in {', '.join(result.headers)}."
        yield f"Programs find its placeholder in {result.variable}."
    if result.key_in == "file":
        yield Note("No keyring is open here, so the key lies beside the encrypted file, readable to you alone.")
    yield Note(f"Let a scope use it: computer-linker scope allow-secret SCOPE {result.name}")


@owner_operation(
    "secret.add",
    did="stored the secret {name}[ for {host}]",
    effect=Effect.CHANGE,
    needs_setup=True,
    text=_text,
    examples=[
        Example(
            "A token for one host.",
            {"input": {"name": "api-token", "origin": "api.example.com", "value": "tok_0123456789abcdef"}},
            runs=False,
        )
    ],
)
async def secret_add(ctx: Context, input: AddInput) -> Added:
    """Store a secret that programs use at one host and never read: by a placeholder, or an SSH key by an agent."""
    stored = _stored(input)
    vault = ctx.use(Vault)
    if not input.replace and (scopes := granted(ctx.services.config, input.name)):
        raise Conflict(
            f"The policy of {', '.join(scopes)} has a secret of this name already, so its programs would get this one.",
            hint=f"computer-linker scope deny-secret {scopes[0]} {input.name}, or add it with --replace",
        )
    vault.add(stored, replace=input.replace)
    ctx.note(host=stored.host or None)
    ctx.effect = "confirmed"
    return Added(
        name=stored.name,
        place=stored.place,
        headers=stored.headers,
        variable=stored.variable,
        host_keys=[fingerprint(each) for each in stored.host_keys],
        key_in=vault.place,
    )


def _stored(input: AddInput) -> StoredSecret:
    """The secret as it is stored. Raises InvalidRequest."""
    if input.origin is None and input.app is None:
        raise InvalidRequest("A secret is for a host or a program.", hint="--for HOST, or --app PROGRAM", field="for")
    origin = Origin() if input.origin is None else origin_of(input.origin)
    if origin.scheme == "ssh":
        return _stored_key(input, origin)
    check_value(input.value)
    if input.host_key is not None:
        raise InvalidRequest("Only an SSH key has a host key.", hint="--for ssh://USER@HOST", field="host_key")
    if not all(map(_HEADER.fullmatch, input.header)):
        raise InvalidRequest("A header field's name has letters, digits and dashes only.", field="header")
    variable = input.env or input.name.upper().replace("-", "_").replace(".", "_")
    if variable[0].isdigit() or (input.env is None and TAKES_OVER.fullmatch(variable)):
        raise InvalidRequest(
            f"{variable} cannot be the variable of a secret.", hint="choose one with --env", field="env"
        )
    return StoredSecret(
        name=input.name,
        scheme=origin.scheme,
        host=origin.host,
        port=origin.port,
        application=input.app,
        headers=list(dict.fromkeys(name.lower() for name in input.header)) or ["authorization"],
        variable=variable,
        authority=None if input.ca is None else _certificates(input.ca),
        value=input.value,
    )


def _stored_key(input: AddInput, origin: Origin) -> StoredSecret:
    given = {"app": input.app, "header": input.header, "env": input.env, "ca": input.ca}
    if other := next((name for name, value in given.items() if value), None):
        raise InvalidRequest(f"An SSH key is used by an agent alone, without --{other}.", field=other)
    return StoredSecret(
        name=input.name,
        scheme=origin.scheme,
        host=origin.host,
        port=origin.port,
        user=origin.user,
        host_keys=recorded_keys(origin.host, origin.port, input.host_key),
        headers=[],
        variable="SSH_AUTH_SOCK",
        value=canonical_key(input.value),
    )


def _certificates(path: str) -> str:
    try:
        text = Path(path).read_text("ascii")
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=text)
    except (OSError, ValueError) as error:
        raise InvalidRequest(f"{Path(path).name} has no certificates that can be read: {error}", field="ca") from None
    return text

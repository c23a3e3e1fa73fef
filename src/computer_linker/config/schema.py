"""config.json as the wire contract has it."""

from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field, PrivateAttr, field_validator, model_validator
from pydantic_core import PydanticCustomError

from computer_linker.model.base import Model
from computer_linker.model.scope import Scope

SCHEMA_VERSION = 1
DEFAULT_PORT = 3939
TunnelName = Literal["cloudflare", "cloudflare-named", "tailscale", "tailscale-serve", "openai", "ssh", "manual"]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Hostname = Annotated[str, Field(pattern=r"^[a-z0-9-]+(\.[a-z0-9-]+)+$", max_length=253)]


def _is_absolute(value: str | None) -> str | None:
    if value is not None and not (value.startswith("/") or (len(value) > 2 and value[1] == ":")):
        raise ValueError("must be an absolute path")
    return value


class BridgeSettings(Model):
    """The desktop bridge: which scope it acts in, where its evidence may lie, and whether a typed phrase counts as a yes."""

    scope: str | None = None
    workspace_root: str | None = None
    allow_phrase: bool = False

    @field_validator("workspace_root")
    @classmethod
    def _root_is_absolute(cls, value: str | None) -> str | None:
        return _is_absolute(value)


class CloudflareSettings(Model):
    """cloudflared, and what a tunnel with a name of one's own needs."""

    program: str | None = None
    sha256: Sha256 | None = None
    hostname: Hostname | None = None
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_. -]*$", max_length=100)] | None = None
    token_file: str | None = None

    _absolute = field_validator("program", "token_file")(_is_absolute)


class TailscaleSettings(Model):
    """The tailscale program, for Funnel (a tailnet that allows it) and Serve (inside the tailnet)."""

    program: str | None = None
    sha256: Sha256 | None = None

    _absolute = field_validator("program")(_is_absolute)


class OpenAiSettings(Model):
    """OpenAI's tunnel-client: it runs only with exactly this digest, and is never searched for."""

    program: str | None = None
    sha256: Sha256 | None = None
    tunnel_id: Annotated[str, Field(pattern=r"^tunnel_[A-Za-z0-9]{8,64}$")] | None = None
    api_key_file: str | None = None

    _absolute = field_validator("program", "api_key_file")(_is_absolute)


class SshSettings(Model):
    """A server of the owner's own, reached by the system's ssh, and the port on its loopback that leads here."""

    program: str | None = None
    sha256: Sha256 | None = None
    destination: (
        Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.-]{0,63}@[A-Za-z0-9][A-Za-z0-9.:-]{0,252}$")] | None
    ) = None
    port: Annotated[int, Field(ge=1, le=65535)] = 22
    remote_port: Annotated[int, Field(ge=1, le=65535)] = 3941
    hostname: Hostname | None = None
    """The name under which a TLS proxy on that server leads to the remote port."""
    identity_file: str | None = None
    known_hosts: str | None = None

    _absolute = field_validator("program", "identity_file", "known_hosts")(_is_absolute)


class TunnelSettings(Model):
    """How this computer is exposed when its owner wants it to be; `provider` is what the service opens by itself."""

    provider: TunnelName | None = None
    port: Annotated[int, Field(ge=0, le=65535)] = 0
    """The loopback port that the tunnel leads to, where nothing but MCP is served; 0 picks a free one."""
    cloudflare: CloudflareSettings = CloudflareSettings()
    tailscale: TailscaleSettings = TailscaleSettings()
    openai: OpenAiSettings = OpenAiSettings()
    ssh: SshSettings = SshSettings()


class Config(Model):
    """One computer and its scopes."""

    schema_version: Literal[1] = 1
    machine_id: Annotated[str, Field(min_length=1, max_length=128)]
    machine_name: Annotated[str, Field(min_length=1, max_length=128)]
    host: Annotated[str, Field(min_length=1, max_length=253)] = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = DEFAULT_PORT
    owner_token: Annotated[str, Field(min_length=16, max_length=512)] | None = None
    public_base_url: str | None = None
    scopes: list[Scope] = []
    bridge: BridgeSettings = BridgeSettings()
    tunnel: TunnelSettings = TunnelSettings()
    approval_page: bool = False
    """A page on this service where a phone on the same network can answer, by a one-time link."""
    _refused: tuple[str, ...] = PrivateAttr(default=())

    @field_validator("owner_token")
    @classmethod
    def _token_fits_a_header(cls, value: str | None) -> str | None:
        if value is not None and not (value.isascii() and value.isprintable() and " " not in value):
            raise ValueError("must be printable ASCII without spaces, as it travels in a header")
        return value

    @field_validator("public_base_url")
    @classmethod
    def _address_is_an_origin(cls, value: str | None) -> str | None:
        if value is None:
            return None
        parts = urlsplit(value)
        if (
            parts.scheme not in ("http", "https")
            or not parts.hostname
            or parts.query
            or parts.fragment
            or parts.username
        ):
            raise ValueError("must be an address such as https://linker.example.com")
        return value

    @model_validator(mode="after")
    def _ids_are_unique(self) -> "Config":
        seen: set[str] = set()
        for index, scope in enumerate(self.scopes):
            if scope.id.casefold() in seen:
                raise PydanticCustomError("same_id", f"two scopes have the id {scope.id!r}", {"index": index})
            seen.add(scope.id.casefold())
        return self

    @property
    def refused(self) -> tuple[str, ...]:
        """What is wrong with config.json now, while this earlier config is in force; empty when this is the file's."""
        return self._refused

    def in_place_of(self, refused: tuple[str, ...]) -> "Config":
        """This config, in force while the file's present content is refused for these reasons."""
        made = self.model_copy()
        made._refused = refused
        return made

    def scope(self, scope_id: str) -> Scope | None:
        """The scope of exactly this id; never a match by path or name."""
        for scope in self.scopes:
            if scope.id == scope_id:
                return scope
        return None

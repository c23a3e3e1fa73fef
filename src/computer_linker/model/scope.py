"""A scope: a named permission boundary, and the policy inside it."""

import re
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Annotated, Any, Literal, Protocol

from pydantic import Field, PrivateAttr, field_validator, model_validator

from computer_linker.model.base import Model
from computer_linker.model.capability import Capability, with_implied
from computer_linker.model.effect import Effect
from computer_linker.model.network import check_entries

SandboxMode = Literal["required", "auto", "off"]
ConfirmMode = Literal["never", "act", "all"]
OutcomeMode = Literal["direct", "view", "ask"]
ScopeKind = Literal["folder", "computer", "any", "service"]
"""The scopes an operation is for."""


class CommandRule(Model):
    """A command pattern that carries its own examples; they are checked when the config loads."""

    pattern: Annotated[str, Field(min_length=1)]
    matches: list[str] = []
    not_matches: list[str] = []


class ScopePolicy(Model):
    """Limits and conditions of one scope. A request can only narrow them."""

    max_runtime_seconds: Annotated[int, Field(gt=0, le=86_400)] = 1800
    max_output_bytes: Annotated[int, Field(gt=0, le=8_000_000)] = 200_000
    max_processes: Annotated[
        int | None, Field(ge=8, le=1_000_000, description="Processes and threads of one command; null is the default.")
    ] = None
    max_memory_mb: Annotated[
        int | None, Field(ge=16, le=16_000_000, description="Memory of one command; null is half of what there is.")
    ] = None
    max_file_mb: Annotated[int, Field(ge=1, le=16_000_000, description="The largest file a command may write.")] = (
        16_384
    )
    allowed_commands: list[str | CommandRule] | None = None
    denied_commands: list[str | CommandRule] = []
    allow_shell: bool = False
    sandbox: SandboxMode = "auto"
    network: Annotated[
        bool | Annotated[list[str], Field(max_length=200)],
        Field(
            description="true, false, or the only hosts that programs reach: `packages.example.org`, `*.example.net:443`, "
            "`localhost:3000`, `db.internal:5432=10.0.0.5`, or `apt`, `cargo`, `go`, `npm`, `pip`. With `ask` you are asked for "
            "other hosts.",
        ),
    ] = False
    secrets: Annotated[
        list[Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]],
        Field(
            max_length=50, description="Stored secrets that programs may use, without reading them, at their own hosts."
        ),
    ] = []
    elevation: Annotated[
        bool, Field(description="`sudo` inside the sandbox asks you for that one command, which then runs outside it.")
    ] = False
    environment: list[str] = []
    confirm: ConfirmMode = "never"
    outcome: Annotated[
        OutcomeMode,
        Field(
            description="Where changes of commands go: the folder, a view that the client keeps or drops, or one that you keep."
        ),
    ] = "direct"
    allow_protected: bool = False
    allow_sensitive: bool = False
    denied_paths: list[str] = []
    allow_displays: bool = True
    allow_windows: bool = True
    allow_processes: bool = True
    excluded_applications: list[str] = []
    preferred_backend: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")] | None = None
    allow_local_fallback: bool = True
    intake_roots: Annotated[
        list[Annotated[str, Field(pattern=r"^(/.+|[a-z0-9][a-z0-9-]{0,39})$")]],
        Field(
            max_length=20,
            description="Where artifacts may be taken from beside the scope: a backend's name for its own folder, "
            "`temporary`, or an absolute path.",
        ),
    ] = []

    @field_validator("network")
    @classmethod
    def _known_hosts(cls, value: bool | list[str]) -> bool | list[str]:
        if not isinstance(value, bool):
            check_entries(value)
        return value

    @property
    def network_width(self) -> int:
        """0 for no network, 1 for some hosts, 2 for all."""
        return 2 if self.network is True else int(bool(self.network))


def _unknown(name: str, known: list[str]) -> str:
    import difflib

    near = difflib.get_close_matches(name, known, n=1)
    return f"unknown capability {name!r}" + (f" (did you mean `{near[0]}`?)" if near else "")


class Scope(Model):
    """A named permission boundary: folders, or this computer's screen and desktop."""

    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
    name: str = ""
    type: Literal["folder", "computer"] = "folder"
    roots: list[str] = []
    capabilities: list[str] = []
    policy: ScopePolicy = ScopePolicy()
    _refused: dict[str, str] = PrivateAttr(default_factory=dict)
    _is_closed: bool = PrivateAttr(default=False)

    @field_validator("capabilities")
    @classmethod
    def _known_capabilities(cls, value: list[str]) -> list[str]:
        known = [capability.value for capability in Capability]
        unknown = [_unknown(name, known) for name in value if name not in known]
        if unknown:
            raise ValueError(", ".join(unknown))
        return value

    @model_validator(mode="after")
    def _folders_have_roots(self) -> "Scope":
        if self.type == "folder" and not self.roots:
            raise ValueError("a folder scope needs at least one root")
        for root in self.roots:
            if not root.startswith("/") and not (len(root) > 2 and root[1] == ":"):
                raise ValueError(f"root {root!r} must be an absolute path")
        return self

    def serves(self, on: ScopeKind) -> bool:
        """True when operations for this kind of scope work here: those on folders also in a computer scope that has roots."""
        return on in ("any", self.type) or (on == "folder" and self.type == "computer" and bool(self.roots))

    @cached_property
    def granted(self) -> frozenset[Capability]:
        """The capabilities given, with what they imply."""
        return with_implied(frozenset(Capability(name) for name in self.capabilities))

    @property
    def root_names(self) -> tuple[str, ...]:
        """A name of each root, for `name:path`: that of its folder, numbered where two have the same."""
        return _names_of(tuple(self.roots))

    @property
    def refused(self) -> dict[str, str]:
        """Roots that are not opened until the owner confirms them, and why."""
        return self._refused

    def refusing(self, roots: dict[str, str]) -> "Scope":
        """This scope, with these roots refused."""
        made = self.model_copy()
        made._refused = roots
        return made

    @property
    def is_closed(self) -> bool:
        """True while it has no rights because config.json changes it and is not valid."""
        return self._is_closed

    def closed(self) -> "Scope":
        """This scope without any right, until config.json is valid. Not a copy: that would keep the cached decisions."""
        made = Scope.from_wire({**self.to_wire(), "capabilities": []}).refusing(self.refused)
        made._is_closed = True
        return made

    @cached_property
    def decided(self) -> dict[str, Any]:
        """Cached policy decisions by operation, for callers bound only by the config; valid because a scope is immutable."""
        return {}


SERVICE = Scope.model_construct(id="", type="service")
"""Where the owner's operations run. No config can name it and no client can ask for it."""


@lru_cache(maxsize=256)
def _names_of(roots: tuple[str, ...]) -> tuple[str, ...]:
    names: list[str] = []
    for root in roots:
        plain = re.split(r"[/\\]", root.rstrip("/\\"))[-1].replace(":", "-")
        # A single letter would be a drive.
        plain = plain if len(plain) > 1 else f"root-{plain}".rstrip("-")
        name, number = plain, 2
        while name in names:
            name, number = f"{plain}-{number}", number + 1
        names.append(name)
    return tuple(names)


# What policy needs of an operation, so that policy does not import the registry.


class Rights(Protocol):
    """The rights an operation asks for."""

    @property
    def name(self) -> str: ...
    @property
    def needs(self) -> frozenset[Capability]: ...
    @property
    def needs_any(self) -> frozenset[Capability]: ...
    @property
    def effect(self) -> Effect: ...
    @property
    def on(self) -> ScopeKind: ...
    @property
    def asked_by(self) -> Callable[[ScopePolicy], bool] | None: ...

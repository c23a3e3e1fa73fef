"""A path held beneath a scope's root, with the rules of that scope."""

from dataclasses import dataclass

from computer_linker.errors import InvalidRequest, PathOutOfScope

_MAX_PATH = 4096
_MAX_NAME = 255


@dataclass(frozen=True, slots=True)
class PathRules:
    """A scope's rules for names inside it; checked for the requested name and again for the opened object."""

    allow_sensitive: bool = False
    allow_protected: bool = False
    denied: tuple[str, ...] = ()
    read_only: tuple[tuple[str, ...], ...] = ()
    """Sub-folders that are read-only through this scope: a narrower scope without `fs:write` covers them, or `programs`."""
    programs: tuple[tuple[str, ...], ...] = ()
    """Those of them where this computer looks for programs, or that hold the service's own code."""
    held: tuple[tuple[str, ...], ...] = ()
    """Folders that are the roots of other scopes: what is in them may change, but they are not moved or removed."""
    refusal: str = ""
    """Why nothing in this root is opened; empty when it is."""


@dataclass(frozen=True, slots=True)
class RootedPath:
    """A name beneath a root. Only policy/paths.py makes one from a request."""

    root: str
    parts: tuple[str, ...]
    rules: PathRules
    prefix: str = ""
    """How the request names the root: empty for the first root, `docs:` by its name, `@1/` by its number."""

    @property
    def shown(self) -> str:
        """The path as a client writes it."""
        return self.prefix + "/".join(self.parts) if self.parts else (self.prefix.rstrip("/") or ".")

    @property
    def base(self) -> str:
        """What stands before the name of an entry of this folder, as a client writes it."""
        return self.prefix + "".join(f"{part}/" for part in self.parts)

    @property
    def name(self) -> str:
        return self.parts[-1] if self.parts else "."

    @property
    def parent(self) -> "RootedPath":
        return RootedPath(self.root, self.parts[:-1], self.rules, self.prefix)

    def child(self, *names: str) -> "RootedPath":
        return RootedPath(self.root, (*self.parts, *names), self.rules, self.prefix)


def split_target(target: str) -> tuple[str, ...]:
    """The names of a relative target. Raises for what is absolute, escapes, or is no path at all."""
    if len(target) > _MAX_PATH:
        raise InvalidRequest(f"A target has at most {_MAX_PATH} characters.")
    if "\0" in target:
        raise InvalidRequest("A target cannot contain a NUL character.")
    if target.startswith(("/", "\\\\")) or target[1:3] in (":\\", ":/"):
        raise PathOutOfScope("The path is absolute and lies outside the scope's roots.")
    parts: list[str] = []
    for name in target.split("/"):
        if name in ("", "."):
            continue
        if name == "..":
            if not parts:
                raise PathOutOfScope("The target leaves the scope's root.")
            parts.pop()
            continue
        if "%" in name and _is_encoded_step(name):
            raise InvalidRequest("The target is percent-encoded; write it plainly. Nothing in it is ever decoded.")
        if len(name.encode("utf-8", "surrogatepass")) > _MAX_NAME:
            raise InvalidRequest(f"A name in the target is longer than {_MAX_NAME} bytes.")
        parts.append(name)
    return tuple(parts)


def _is_encoded_step(name: str) -> bool:
    """True for a name that a program which decodes it (we never do) would read as a parent folder, such as `%2e%2e`."""
    from urllib.parse import unquote

    for _ in range(3):
        name = unquote(name)
        if any(step == ".." for step in name.replace("\\", "/").split("/")):
            return True
    return False

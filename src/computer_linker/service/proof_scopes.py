"""Selects the scope for evidence: that of a file, or the only one that allows it."""

from pathlib import Path

from computer_linker.config.schema import Config
from computer_linker.errors import InvalidRequest, NotFound


def scope_of_file(config: Config, file: Path, scope: str | None) -> tuple[str, str]:
    """The scope that contains a file, and its path there. The service checks it again."""
    place = file.absolute()
    for one in config.scopes:
        if one.type != "folder" or scope not in (None, one.id):
            continue
        for number, root in enumerate(one.roots):
            if place.is_relative_to(root) or place.resolve().is_relative_to(Path(root).resolve()):
                inner = place if place.is_relative_to(root) else place.resolve()
                below = inner.relative_to(root if place.is_relative_to(root) else Path(root).resolve())
                return one.id, f"@{number}/{below}" if len(one.roots) > 1 else str(below)
    raise NotFound(f"{file} lies in no scope", hint="only files of a scope are kept: computer-linker scope list")


def only_scope(config: Config, scope: str | None, kind: str, needs: tuple[str, ...]) -> str:
    """The scope that was named, or the only one of this kind that allows all of this."""
    if scope is not None:
        return scope
    scopes = config.scopes
    fitting = [one.id for one in scopes if one.type == kind and set(needs) <= {c.value for c in one.granted}]
    if len(fitting) == 1:
        return fitting[0]
    if not fitting:
        of_kind = [one.id for one in scopes if one.type == kind]
        place = f"edit {of_kind[0]}" if of_kind else "add --computer" if kind == "computer" else "add FOLDER"
        wanted = " ".join(f"--allow {one}" for one in needs)
        raise NotFound(f"no {kind} scope allows {' and '.join(needs)}", hint=f"computer-linker scope {place} {wanted}")
    raise InvalidRequest("which scope?", hint=f"--scope {' or '.join(fitting)}")

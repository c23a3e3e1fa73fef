"""Reads files for the artifact operations: of the scope, and of the intake roots that the scope's policy names."""

from computer_linker.artifacts.store import MAX_BYTES
from computer_linker.errors import PathOutOfScope, PermissionDenied
from computer_linker.model.capability import Capability
from computer_linker.policy.engine import holds
from computer_linker.providers.backends.intake import read_from_intake
from computer_linker.registry import Context


async def file_content(ctx: Context, target: str, most: int = MAX_BYTES) -> bytes:
    """Read one whole file of the scope or of one of its intake roots.

    Raises:
        PermissionDenied: the caller may store evidence here but not read files; a copy would bypass that.
    """
    if not holds(ctx.principal, ctx.scope, Capability.FS_READ):
        needed = Capability.FS_READ.value
        raise PermissionDenied(f"Keeping a file needs {needed} in scope {ctx.scope.id}.", missing=[needed])
    try:
        path = ctx.path(target)
    except PathOutOfScope:
        taken = await read_from_intake(ctx.scope, ctx.services.config, ctx.services.home, target, most)
        if taken is None:
            raise
        ctx.note(intake=taken.root)
        return taken.content
    content, found = await ctx.computer.files.read_whole(path, most)
    if found.links > 1:
        ctx.warn(f"{path.shown} is a hardlink: {found.links} names lead to it, and some may lie outside the scope.")
    return content

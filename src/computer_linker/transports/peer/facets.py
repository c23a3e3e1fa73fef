"""Facet calls of a paired machine as operations of a catalogue: the same policy, confirmation, device queue and audit as any."""

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, Self

from computer_linker.computer.facets.files import Change, Changed, Copy, Move, Restore
from computer_linker.computer.facets.lines import MAX_REPLY
from computer_linker.computer.remote.files import changed_adapter, paths_of, unpacked_change
from computer_linker.computer.remote.methods import Method, methods
from computer_linker.errors import InvalidRequest, NotFound, PathOutOfScope, PermissionDenied, UnknownOperation
from computer_linker.model.effect import Effect
from computer_linker.model.paths import RootedPath, split_target
from computer_linker.policy.engine import find_scope, missing_capabilities
from computer_linker.policy.paths import check_name, rules_of
from computer_linker.providers.shots import shoot
from computer_linker.providers.ui.chords import MAX_STROKES, chord
from computer_linker.providers.window_choice import window_by_id
from computer_linker.registry.catalog import Catalog
from computer_linker.registry.context import Context
from computer_linker.registry.operation import Operation, PathBoundary
from computer_linker.transports.peer.children import ProcessesHere
from computer_linker.transports.peer.facet_shows import shows_for
from computer_linker.transports.peer.frames import MAX_BLOBS
from computer_linker.undo.journal import UndoJournal

Push = Callable[[Any], Awaitable[None]]
_FIELDS = frozenset({"scope", "method", "params", "confirm"})
_MOST = {"limit": MAX_BLOBS, "max_bytes": MAX_REPLY, "max_entries": 100_000, "max_results": 100_000}


@dataclass
class Plain:
    """A facet's answer: plain values in their wire form."""

    value: Any


@dataclass(slots=True)
class FacetRequest:
    """One facet call of a peer, its outer shape checked."""

    scope: str
    method: Method
    params: dict[str, Any]
    confirm: str | None = None
    give: Push | None = field(default=None)
    """Pushes one item of a stream to the caller."""

    @classmethod
    def parse(cls, value: dict[str, Any]) -> Self:
        """Parse the request of a call frame."""
        scope, name, params, confirm = (value.get(part) for part in ("scope", "method", "params", "confirm"))
        if not value.keys() <= _FIELDS or type(scope) is not str or type(params) is not dict:
            raise InvalidRequest("A facet call has scope, method and params.", rule="malformed_frame")
        method = methods().get(name) if type(name) is str else None
        if method is None:
            raise UnknownOperation("There is no such facet method.", rule="malformed_frame")
        return cls(scope, method, params, confirm if type(confirm) is str else None)

    @property
    def shown(self) -> dict[str, Any]:
        """The arguments shown for confirmation: bytes by their digest."""
        shown: dict[str, Any] = _shown(self.params)
        return shown


def facet_catalog() -> Catalog:
    """Every facet method as an operation. They exist for paired machines alone, so no client sees them in the registry."""
    operations: dict[str, Operation] = {method.name: _operation(method) for method in methods().values()}
    return Catalog(operations, operations)


class FacetOperation(Operation):
    """An operation whose arguments are outside the request; the facet's own annotations are their schema."""

    def parse(self, target: Any, input: Any, options: Any) -> dict[str, Any]:
        return {}


def _operation(method: Method) -> FacetOperation:
    run = {
        "files": _run_files, "screen": _run_screen, "keyboard": _run_keyboard,
    }.get(method.facet, _run)  # fmt: skip
    return FacetOperation(
        name=method.name, run=_run_stream if method.is_stream else run, needs=method.needs, needs_any=method.needs_any,
        effect=method.effect, on=method.on, boundary=_boundary(method),
        deadline_s=None if method.is_stream else 60,
        destructive=method.effect is not Effect.OBSERVE, awaits_intent=method.effect is Effect.CHANGE,
        examples=(), shows=None if method.effect is Effect.OBSERVE else shows_for(method),
    )  # fmt: skip


def _boundary(method: Method) -> PathBoundary:
    if method.facet == "processes":
        return "sandboxed"
    return "path-enforced" if method.on == "folder" else "desktop"


async def _run(ctx: Context) -> Plain:
    request: FacetRequest = ctx.payload
    _refuse_unjudged(ctx)
    method = request.method
    result = await _bound(ctx, method)(**method.from_params(request.params))
    ctx.effect = "suspected_noop" if method.known is not None and result is False else method.known
    return _answered(ctx, method, result)


async def _run_keyboard(ctx: Context) -> Plain:
    """Send keys to applications only, as the operations do: keys for the desktop or the system are refused."""
    request: FacetRequest = ctx.payload
    if request.method.attribute == "press":
        given = request.method.from_params(request.params)
        chord(given["keys"])
        if not 1 <= given.get("count", 1) <= MAX_STROKES:
            raise InvalidRequest(f"A key is pressed at most {MAX_STROKES} times.", field="count")
    return await _run(ctx)


async def _run_screen(ctx: Context) -> Plain:
    """Capture as the operations do: password fields masked, windows and displays only if allowed."""
    request: FacetRequest = ctx.payload
    method, policy = request.method, ctx.scope.policy
    if method.attribute == "displays":
        return await _run(ctx)
    _refuse_unjudged(ctx)
    given = method.from_params(request.params)
    if method.attribute == "capture":
        if not policy.allow_displays:
            raise PermissionDenied("This scope does not allow capturing displays.", rule="allowDisplays")
        shot = await shoot(ctx.computer, given.get("area"), cursor=given.get("cursor", False))
    else:
        if not policy.allow_windows:
            raise PermissionDenied("This scope does not allow capturing windows.", rule="allowWindows")
        window = window_by_id(await ctx.computer.windows.list(), given["window_id"], ())
        shot = await shoot(ctx.computer, window=window, cursor=given.get("cursor", False))
    ctx.note(hidden=shot.hidden, bytes=len(shot.pixmap.data))
    return _answered(ctx, method, shot.pixmap)


async def _run_stream(ctx: Context) -> Plain:
    request: FacetRequest = ctx.payload
    _refuse_unjudged(ctx)
    method, sent = request.method, 0
    give = request.give
    assert give is not None, "a stream has somewhere to go"
    opened = _bound(ctx, method)(**method.from_params(request.params))
    if method.facet == "accessibility":
        async with opened as changes:
            async for item in changes:
                _refuse_revoked(ctx, method)
                await give(method.to_answer(item)[0])
        return Plain(None)
    async with aclosing(opened) as items:
        async for item in items:
            _refuse_revoked(ctx, method)
            await give(method.to_answer(item)[0])
            sent += 1
    ctx.note(items=sent)
    return Plain(None)


def _refuse_revoked(ctx: Context, method: Method) -> None:
    """Check a long-lived stream again: a capability that was revoked meanwhile ends it with the next item."""
    scope = find_scope(ctx.services.current_config, ctx.scope.id, ctx.principal)
    if scope is not ctx.scope and missing_capabilities(scope, method, ctx.principal):
        raise PermissionDenied(f"Scope {scope.id} does not allow {method.name} any more.", rule="taken_away")


async def _run_files(ctx: Context) -> Plain:
    request: FacetRequest = ctx.payload
    method = request.method
    if method.attribute in ("change", "rehearse"):
        return await _run_changes(ctx, method.attribute, request.params)
    given = method.from_params(request.params)
    given["path"] = _rehomed(ctx, given["path"], for_writing=False)
    ctx.note(path=given["path"].shown)
    _bound_reading(given)
    return _answered(ctx, method, await _bound(ctx, method)(**given))


def _bound_reading(given: dict[str, Any]) -> None:
    """Limit how much is read for one answer; more than this would not fit into one anyway."""
    for name, most in _MOST.items():
        if name in given:
            given[name] = min(given[name], most)
    if "window" in given:
        given["window"] = replace(given["window"], max_bytes=min(given["window"].max_bytes, MAX_BLOBS))


def _requested_changes(ctx: Context) -> list[Change]:
    """The changes of a batch, on this scope's own paths."""
    params = ctx.payload.params
    sent = params.get("changes")
    if params.keys() != {"changes"} or type(sent) is not list or not 0 < len(sent) <= 1000:
        raise InvalidRequest("A batch has `changes`.", field="changes")
    return [_rehomed_change(ctx, unpacked_change(one)) for one in sent]


async def _run_changes(ctx: Context, what: str, params: dict[str, Any]) -> Plain:
    changes = _requested_changes(ctx)
    ctx.note(path=changes[0].path.shown, files=len(changes))
    done = await ctx.change(changes, dry_run=what == "rehearse")
    if what == "rehearse":
        ctx.effect = None
        return Plain(None)
    ctx.note(changes=len(done))
    steps = ctx.use(UndoJournal).steps_of(ctx.operation_id)
    return Plain({"done": changed_adapter().dump_python(_shown_paths(done, params["changes"])), "steps": steps})


def _rehomed_change(ctx: Context, change: Change) -> Change:
    """The change on this scope's own paths. The source of a copy is only read; everything else is written."""
    is_copy = isinstance(change, Copy)
    moved: Change = replace(change, path=_rehomed(ctx, change.path, for_writing=not is_copy))
    if isinstance(moved, Move | Copy):
        moved = replace(moved, destination=_rehomed(ctx, moved.destination, for_writing=True))
    if isinstance(moved, Restore):
        where = moved.path
        if not ctx.use(UndoJournal).has_kept(moved.kept, ctx.scope.id, ctx.principal, (where.root, where.parts)):
            # The name is the peer's claim: only what this scope stored for this path may be restored.
            raise NotFound("What that path was is not kept here.", path=where.shown)
    return moved


def _rehomed(ctx: Context, path: RootedPath, *, for_writing: bool) -> RootedPath:
    """The path beneath this scope's own root, under both its rules and the caller's, which can only narrow."""
    scope = ctx.scope
    root = scope.roots[0] if path.root == scope.id else path.root
    if root not in scope.roots or split_target("/".join(path.parts)) != path.parts:
        raise PathOutOfScope("The path is not beneath a root of this scope.")
    own, asked = rules_of(scope, root, ctx.services.config), path.rules
    rules = replace(
        own,
        allow_sensitive=own.allow_sensitive and asked.allow_sensitive,
        allow_protected=own.allow_protected and asked.allow_protected,
        denied=(*own.denied, *asked.denied),
        read_only=(*own.read_only, *asked.read_only),
    )
    index = scope.roots.index(root)
    made = RootedPath(root, path.parts, rules, f"{scope.root_names[index]}:" if index else "")
    check_name(made, for_writing=for_writing)
    return made


def _shown_paths(done: Sequence[Changed], sent: list[Any]) -> list[Changed]:
    """The changes made, with the paths as the caller wrote them."""
    asked = [paths_of(unpacked_change(one))[-1] for one in sent]
    if len(asked) != len(done):
        return list(done)
    return [replace(change, path=path) for change, path in zip(done, asked, strict=True)]


def _refuse_unjudged(ctx: Context) -> None:
    """Refuse where a scope hides applications: only operations can tell which window a call is about."""
    if ctx.scope.policy.excluded_applications:
        raise PermissionDenied(
            "This scope keeps some applications out of sight, so its desktop is used by operations (desktop.*, screen.*) only.",
            rule="excludedApplications",
        )


def _bound(ctx: Context, method: Method) -> Callable[..., Any]:
    facet = ProcessesHere(ctx) if method.facet == "processes" else getattr(ctx.computer, method.facet)
    bound: Callable[..., Any] = getattr(facet, method.attribute)
    return bound


def _answered(ctx: Context, method: Method, result: Any) -> Plain:
    value, blobs = method.to_answer(result)
    for blob in blobs:
        ctx.attach("application/octet-stream", blob)
    return Plain(value)


def _shown(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"sha256": hashlib.sha256(value).hexdigest(), "size": len(value)}
    if isinstance(value, dict):
        return {name: _shown(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_shown(part) for part in value]
    return value

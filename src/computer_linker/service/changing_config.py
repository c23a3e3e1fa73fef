"""The only function by which an owner's operation changes config.json: checked, undoable, read back."""

import hashlib
import json
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

from anyio import to_thread

from computer_linker.config import roots
from computer_linker.config.difference import changes
from computer_linker.config.load import CONFIG_NAME, document_of, load, parse, read_document, validated, with_identity
from computer_linker.config.private import make_folder
from computer_linker.config.runtime import effective
from computer_linker.config.schema import Config
from computer_linker.config.store import (
    Beside,
    Edit,
    as_text,
    ensure,
    exists,
    keep_last_good,
    locked,
    update,
    write_config,
    write_whole,
)
from computer_linker.errors import ConfigInvalid, ConfirmRequired, Conflict, NotFound
from computer_linker.registry.context import Context
from computer_linker.service.settings import check

_FOLDER = "config-undo"
_KEPT = 50
_LINES = ".changes"
_KEPT_LINES = 500
_NOT_UNDONE = ("ownerToken", "tunnel")
"""What an undo leaves as it is: an old token would work again, and a tunnel is opened and closed by its own commands."""


async def change_config(ctx: Context, edit: Edit) -> Config:
    """Change config.json by `edit`, which works in place. Raises ConfigInvalid, having changed nothing."""
    home = ctx.services.home

    def change() -> tuple[Config, bool, list[str]]:
        stored = change_recorded(home, ctx.operation_id, edit)
        return stored, load(home) == stored, changed_lines(home, ctx.operation_id)

    # Another process may hold the config's lock.
    stored, is_there, lines = await to_thread.run_sync(change)
    ctx.effect = "confirmed" if is_there else "partial"
    ctx.note(changed="; ".join(lines) or None)
    return stored


def change_recorded(home: Path, operation_id: str, edit: Edit) -> Config:
    """Change config.json under its lock, and keep what the change replaces; waits for the disk."""

    def keep(before: dict[str, Any], after: dict[str, Any]) -> None:
        if _undoable(before) != _undoable(after):
            _keep(home, operation_id, before, after)

    return _update(home, edit, keep)


async def first_config(ctx: Context, *, with_token: bool = True) -> bool:
    """Make a first config where there is none; True when made now."""
    from computer_linker.auth.owner_token import new_token

    return await to_thread.run_sync(ensure, ctx.services.home, new_token() if with_token else None)


def kept_config_changes(home: Path) -> list[str]:
    """The operations whose change of the config is kept, the oldest first."""
    return sorted(path.stem for path in (home / _FOLDER).glob("*.json"))


async def newest_config_change(home: Path) -> str | None:
    """The newest kept change that can be undone now: config.json is still what that change made of it."""

    def find() -> str | None:
        kept = kept_config_changes(home)
        if not kept or not exists(home):
            return None
        try:
            now = _digest(with_identity(read_document(home).value, home))
        except ConfigInvalid:
            # What no command wrote cannot be undone to what was before a command; changes of files still can.
            return None
        return next((one for one in reversed(kept) if _read(home, one)["after"] == now), None)

    return await to_thread.run_sync(find)


def changed_lines(home: Path, operation_id: str) -> list[str]:
    """What that operation changed in the config, a line for each field; empty when nothing is kept of it."""
    try:
        return _path(home, operation_id, _LINES).read_text("utf-8").splitlines()
    except FileNotFoundError:
        return []


async def undo_config_change(home: Path, operation_id: str, undo_id: str = "", *, is_agreed: bool = False) -> list[str]:
    """Put config.json back to what it was before that operation, and return what changed.

    Raises Conflict when it was changed since, and ConfirmRequired where clients would get more rights and that is not agreed.
    The folders of its scopes are again those that were on record then, so one that was replaced meanwhile stays refused.
    """
    lines: list[str] = []

    def edit(document: dict[str, Any]) -> None:
        if _digest(document) != kept["after"]:
            raise Conflict("config.json was changed since; nothing was undone.", hint="undo the later change first")
        stays = {name: document[name] for name in _NOT_UNDONE if name in document}
        found = changes(_undoable(document), kept["before"])
        wider = [change.line for change in found if change.widens]
        if wider and not is_agreed:
            raise ConfirmRequired(
                f"To undo this gives clients more than now: {'; '.join(wider)}. Nothing was changed.",
                hint=f"if you mean it: computer-linker undo {operation_id} --yes",
                again={"operation": operation_id, "yes": True},
            )
        lines.extend(change.line for change in found)
        document.clear()
        document.update(kept["before"], **stays)

    def put_back(before: dict[str, Any], after: dict[str, Any]) -> None:
        roots.put_back(home, kept["roots"])
        if undo_id:
            _store_lines(home, undo_id, lines)

    def undo() -> None:
        _update(home, edit, put_back)
        _path(home, operation_id).unlink(missing_ok=True)

    kept = await to_thread.run_sync(_read, home, operation_id)
    if "raw" in kept:
        raw = b64decode(kept["raw"])
        wrong = _why_invalid(raw, home)
        if not is_agreed:
            raise ConfirmRequired(
                f"To undo this puts back a config.json that is not valid ({wrong}). Nothing was changed.",
                hint=f"if you mean it: computer-linker undo {operation_id} --yes",
                again={"operation": operation_id, "yes": True},
            )
        await to_thread.run_sync(_put_back_bytes, home, operation_id, kept, raw)
        lines.append(f"It is not valid now, as it was then: {wrong}")
    else:
        await to_thread.run_sync(undo)
    return lines


def replace_recorded(home: Path, operation_id: str, before: bytes, value: dict[str, Any]) -> Config:
    """Put a valid document in place of a config.json that is not valid, and keep its bytes for an undo."""
    config = effective(parse(value), home)
    with locked(home):
        if (home / CONFIG_NAME).read_bytes() != before:
            raise Conflict("config.json was changed meanwhile; nothing was repaired.", hint="computer-linker doctor")
        kept = {"raw": b64encode(before).decode(), "after": _digest(value), "whole": _whole(value)}
        _store(home, operation_id, kept)
        write_config(home, as_text(value))
        keep_last_good(home, as_text(value))
    return config


def _why_invalid(raw: bytes, home: Path) -> str:
    try:
        effective(validated(document_of(raw), home, check), home)
    except ConfigInvalid as error:
        return error.message
    return "it was not valid when it was repaired"


def _put_back_bytes(home: Path, operation_id: str, kept: dict[str, Any], raw: bytes) -> None:
    """Undo `replace_recorded`: the file is again what it was, which was not valid."""
    with locked(home):
        if _whole(read_document(home).value) != kept["whole"]:
            raise Conflict("config.json was changed since; nothing was undone.", hint="undo the later change first")
        write_config(home, raw)
        _path(home, operation_id).unlink(missing_ok=True)


def _update(home: Path, edit: Edit, beside: Beside) -> Config:
    def checked(config: Config) -> list[str]:
        effective(config, home)
        return check(config)

    return update(home, edit, checked, beside)


def keep_change(home: Path, operation_id: str, before: dict[str, Any], after: dict[str, Any]) -> None:
    """Keep a change that was made by hand, so that it can be undone as one by a command."""
    with locked(home):
        if _undoable(before) != _undoable(after):
            _keep(home, operation_id, before, after)


def _keep(home: Path, operation_id: str, before: dict[str, Any], after: dict[str, Any]) -> None:
    identities = roots.listed(home, parse(before))
    _store(home, operation_id, {"before": _undoable(before), "after": _digest(after), "roots": identities})
    _store_lines(home, operation_id, [change.line for change in changes(_undoable(before), _undoable(after))])


def _store_lines(home: Path, operation_id: str, lines: list[str]) -> None:
    """Keep what was changed for the history, also after an undo; never a token."""
    write_whole(home / _FOLDER, f"{operation_id}{_LINES}", "".join(f"{line}\n" for line in lines).encode())
    _prune(home / _FOLDER, _LINES, _KEPT_LINES)


def _store(home: Path, operation_id: str, kept: dict[str, Any]) -> None:
    folder = home / _FOLDER
    make_folder(folder)
    write_whole(folder, f"{operation_id}.json", json.dumps(kept).encode())
    _prune(folder, ".json", _KEPT)


def _prune(folder: Path, ending: str, most: int) -> None:
    for old in sorted(folder.glob(f"*{ending}"))[:-most]:
        old.unlink(missing_ok=True)


def _read(home: Path, operation_id: str) -> dict[str, Any]:
    try:
        kept: dict[str, Any] = json.loads(_path(home, operation_id).read_bytes())
    except FileNotFoundError:
        raise NotFound(f"There is nothing kept to undo {operation_id[:80]}.") from None
    return kept


def _path(home: Path, operation_id: str, ending: str = ".json") -> Path:
    return home / _FOLDER / f"{operation_id}{ending}"


def _undoable(document: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name not in _NOT_UNDONE}


def _whole(document: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def _digest(document: dict[str, Any]) -> str:
    return _whole(_undoable(document))

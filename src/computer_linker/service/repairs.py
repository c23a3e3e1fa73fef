"""`doctor --fix`: every repair that has one right answer, kept for an undo."""

from pathlib import Path

from computer_linker.config.load import BY_HAND, CONFIG_NAME, load, read_document, read_file, with_identity
from computer_linker.config.mend import mended
from computer_linker.config.private import not_set_up
from computer_linker.config.repair import repaired, tighten
from computer_linker.config.store import exists, last_good
from computer_linker.errors import ConfigInvalid
from computer_linker.service.changing_config import change_recorded, replace_recorded
from computer_linker.service.settings import check


def repair(home: Path, operation_id: str) -> list[str]:
    """Make the repairs; one sentence each. Raises ConfigInvalid with the problems that are left, having changed no content."""
    if not exists(home):
        raise not_set_up()
    done = tighten(home)
    try:
        load(home, check)
    except ConfigInvalid as error:
        if not error.problems:
            raise
        return [*done, *_mend(home, operation_id, error)]
    if repaired(with_identity(dict(read_document(home).value), home)):
        change_recorded(home, operation_id, lambda document: done.extend(repaired(document)))
        done.append(_put_back(operation_id))
    return done


def can_repair(home: Path, refusal: ConfigInvalid) -> bool:
    """Whether `repair` would make a config.json valid that is refused for this reason. Changes nothing."""
    try:
        if not refusal.problems:
            return bool(tighten(home, dry_run=True))
        raw, _ = read_file(home)
    except (ConfigInvalid, OSError):
        return False
    return not mended(raw, last_good(home), home, check).left


def _mend(home: Path, operation_id: str, why: ConfigInvalid) -> list[str]:
    raw, _ = read_file(home)
    made = mended(raw, last_good(home), home, check)
    if made.left:
        raise ConfigInvalid.of(made.left if made.done else why.problems, BY_HAND)
    also = repaired(made.value)
    replace_recorded(home, operation_id, raw, made.value)
    return [*made.done, *also, _put_back(operation_id)]


def _put_back(operation_id: str) -> str:
    return f"{CONFIG_NAME} as it was can be put back: computer-linker undo {operation_id}"

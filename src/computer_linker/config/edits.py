"""Finds what changed in config.json outside this program's commands, so that the history has it too."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from computer_linker.config.difference import changes
from computer_linker.config.load import Check, document_of, read_file, validated, with_identity
from computer_linker.config.runtime import effective
from computer_linker.config.store import digest_of, locked, note, noted, token_digest, without_token
from computer_linker.errors import ConfigInvalid


@dataclass(frozen=True)
class Edit:
    """A change by hand: a line for each field, or why the file is refused; and the fields before and after."""

    lines: list[str]
    refusal: ConfigInvalid | None = None
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None


def find_edit(home: Path, check: Check | None = None) -> Edit | None:
    """What was changed by hand since the last call, by any process; None without that. Waits for the config's lock.

    The first file that is seen at all is taken as it is.
    """
    with locked(home):
        known = noted(home)
        raw, _ = read_file(home)
        if known is not None and known.digest == digest_of(raw):
            return None
        try:
            document = document_of(raw)
            effective(validated(document, home, check), home)
            after = with_identity(document.value, home)
        except ConfigInvalid as error:
            note(home, raw)
            return Edit([], error)
        note(home, raw)
        if known is None or not known.value:
            return None
        lines = [change.line for change in changes(known.value, without_token(after))]
        if known.token != token_digest(after):
            lines.append("config: ownerToken changed")
        if known.value.get("tunnel") != after.get("tunnel"):
            lines.append("config: tunnel changed")
        return Edit(lines, None, known.value, after) if lines else None

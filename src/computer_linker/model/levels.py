"""A path pattern as one pattern a folder level, matched in time bounded by the product of both lengths."""

import re

Levels = tuple[re.Pattern[str] | None, ...]
"""None stands for `**`, any number of levels."""

_NOTHING = re.compile(r"(?!)")


def fits(levels: Levels, names: list[str]) -> bool:
    """Whether the names match, level by level. Only the last `**` is ever retried."""
    at = name = 0
    star = retry = -1
    while name < len(names):
        level = levels[at] if at < len(levels) else _NOTHING
        if level is None:
            star, retry = at, name
            at += 1
        elif level.fullmatch(names[name]):
            at += 1
            name += 1
        elif star >= 0:
            retry += 1
            at, name = star + 1, retry
        else:
            return False
    return all(level is None for level in levels[at:])

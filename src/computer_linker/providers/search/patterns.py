"""A search pattern for the scanner in Python: what ripgrep's engine takes and Python's takes alike, nothing more."""

import re
import warnings

from computer_linker.errors import InvalidRequest

_NOT_ALIKE = re.compile(
    r"""\(\?(?:[=!>(]|<[=!]|P=|P>|\#)      # look-around, atomic, conditional, back reference by name, comment
      | \\(?:[1-9]|[pPkKGRXhHNQELUu]|[<>])  # back references, classes and escapes only one of the two knows
      | [*+?}]\+                            # possessive
      | \[\[: | && | --\[ | ~~ """,
    re.VERBOSE,
)
_MAX_REPEAT = 10_000
_ANCHORED = re.compile(r"\\[AzZ]")


class Pattern:
    """One pattern, asked of a line or, quickly, of a whole block of lines."""

    def __init__(self, text: str, *, ignore_case: bool, fixed: bool) -> None:
        source = re.escape(text) if fixed else _checked(text)
        flags = re.MULTILINE | (re.IGNORECASE if ignore_case else 0)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self._regex = re.compile(source, flags)
        except (re.error, OverflowError, RecursionError) as error:
            raise InvalidRequest(f"{error}", field="query") from error
        self._blocks_tell = fixed or _ANCHORED.search(source) is None

    def may_match(self, block: bytes) -> bool:
        """False when no line of the block can match."""
        return not self._blocks_tell or self._regex.search(block.decode("utf-8", "surrogateescape")) is not None

    def start_in(self, line: bytes) -> int | None:
        """The byte where the first match in this line begins."""
        text = line.decode("utf-8", "surrogateescape")
        found = self._regex.search(text)
        return None if found is None else len(text[: found.start()].encode("utf-8", "surrogateescape"))


def _checked(text: str) -> str:
    odd = _NOT_ALIKE.search(re.sub(r"\\\\", "  ", text))
    if odd is not None:
        raise InvalidRequest(f"`{odd[0]}` needs ripgrep, which is not installed here.", field="query")
    if re.search(r"\\n|\n", re.sub(r"\\\\", "  ", text)):
        raise InvalidRequest("a pattern cannot span lines", field="query")
    if any(int(count) > _MAX_REPEAT for count in re.findall(r"\d{4,}(?=,?\d*\})", text)):
        raise InvalidRequest("the pattern repeats too often", field="query")
    return re.sub(r"\(\?<(?=[A-Za-z_])", "(?P<", text).replace("\\z", "\\Z")

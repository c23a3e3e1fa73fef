"""Truncating text after whole lines, never inside a character, so that a reply fits the wire limit."""

MAX_REPLY = 8 * 1024 * 1024
_ENVELOPE = 96 * 1024
"""Bytes reserved for the envelope around the content."""
_STEP = 16_384
_PLAIN = bytes(code for code in range(32, 256) if code not in b'"\\')


def cut_text(data: bytes, limit: int) -> bytes:
    """At most `limit` bytes of `data`: whole lines where at least one fits, else whole characters."""
    if len(data) <= limit:
        return data
    end = data.rfind(b"\n", 0, limit)
    return data[: end + 1] if end >= 0 else whole_characters(data[:limit])


def whole_characters(data: bytes) -> bytes:
    """`data` without a UTF-8 character that was cut in two at its end."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 == 0x80:
            continue
        length = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
        return data[:-back] if length > back else data
    return data


def wire_size(data: bytes) -> int:
    """The bytes of `data` as a JSON string inside a JSON string: an envelope travels as text inside a message."""
    # One pass leaves only the bytes that JSON escapes; there are few of them, so counting those is cheap.
    special = data.translate(None, _PLAIN)
    quoted = special.count(b'"') + special.count(b"\\")
    short = sum(special.count(byte) for byte in (b"\n", b"\r", b"\t", b"\b", b"\f"))
    return len(data) + 3 * quoted + 2 * short + 6 * (len(special) - quoted - short)


def fit_text(data: bytes, room: int = MAX_REPLY - _ENVELOPE) -> bytes:
    """As much of `data`, in whole lines, as fits `room` bytes of the wire."""
    while len(data) * 7 > room:
        size = wire_size(data)
        if size <= room:
            break
        data = cut_text(data, max(1, min(len(data) - 1, len(data) * room // size)))
    return data


def line_window(data: bytes, first: int, count: int | None, room: int) -> tuple[bytes, int | None]:
    """Lines of `data` from number `first` on, as fit `room` bytes, and the number of the line after them; None at the end.

    No list of lines is made: of a text of short lines that takes forty times its size.
    """
    start = _after_lines(data, first - 1, 0)
    end = len(data) if count is None else _after_lines(data, count, start)
    kept = cut_text(data[start : min(end, start + room + 1)], room)
    is_whole = start + len(kept) == len(data)
    return kept, None if is_whole else first + max(1, kept.count(b"\n"))


def count_lines(data: bytes) -> int:
    return data.count(b"\n") + (not data.endswith(b"\n") and data != b"")


def _after_lines(data: bytes, lines: int, at: int) -> int:
    """The place after this many lines, counted from `at`."""
    while lines > 0 and at < len(data):
        found = data.count(b"\n", at, at + _STEP)
        if found >= lines:
            for _ in range(lines):
                at = data.index(b"\n", at) + 1
            return at
        lines, at = lines - found, min(len(data), at + _STEP)
    return at


def fit_bytes(data: bytes, room: int = MAX_REPLY - _ENVELOPE) -> bytes:
    """As much of `data` as fits when it is encoded as base64."""
    return data[: room // 4 * 3]

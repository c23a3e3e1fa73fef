"""Three-way merge of text: both sides' changes of one base, line by line, or none where they touch the same lines."""

from collections.abc import Iterator, Sequence

from computer_linker.changes.difference import MAX_LINES, TimedMatcher, TookTooLong, as_text, split_lines

_Block = tuple[int, int, int]


def merged(base: bytes, ours: bytes, theirs: bytes, until: float) -> bytes | None:
    """The text with the changes of both; None when they overlap, one is no text, or the time is over.

    Changes of adjoining lines overlap, as with `git merge-file`.
    """
    texts = (as_text(base), as_text(ours), as_text(theirs))
    if texts[0] is None or texts[1] is None or texts[2] is None:
        return None
    lines = (split_lines(texts[0]), split_lines(texts[1]), split_lines(texts[2]))
    if any(len(each) > MAX_LINES for each in lines):
        return None
    try:
        found = _merged(*lines, until)
    except TookTooLong:
        return None
    return None if found is None else "".join(found).encode()


def _merged(base: list[str], ours: list[str], theirs: list[str], until: float) -> list[str] | None:
    result: list[str] = []
    at = (0, 0, 0)
    for start, size in _common(base, ours, theirs, until):
        gap = [each[was:now] for each, was, now in zip((base, ours, theirs), at, start, strict=True)]
        chosen = _chosen(*gap)
        if chosen is None:
            return None
        result += chosen
        result += base[start[0] : start[0] + size]
        at = (start[0] + size, start[1] + size, start[2] + size)
    return result


def _chosen(base: list[str], ours: list[str], theirs: list[str]) -> list[str] | None:
    """The side that changed these lines; None when both did, differently."""
    if ours in (base, theirs):
        return theirs
    return ours if theirs == base else None


def _common(
    base: list[str], ours: list[str], theirs: list[str], until: float
) -> Iterator[tuple[tuple[int, int, int], int]]:
    """The runs of lines that neither side changed, by where they start in each; at last an empty one at the end."""
    left, right = _blocks(base, ours, until), _blocks(base, theirs, until)
    i = j = 0
    while i < len(left) and j < len(right):
        (a, in_ours, n), (b, in_theirs, m) = left[i], right[j]
        start, end = max(a, b), min(a + n, b + m)
        if start < end:
            yield (start, in_ours + start - a, in_theirs + start - b), end - start
        if a + n < b + m:
            i += 1
        else:
            j += 1
    yield (len(base), len(ours), len(theirs)), 0


def _blocks(base: Sequence[str], other: Sequence[str], until: float) -> list[_Block]:
    matcher = TimedMatcher(base, other, until=until)
    return [(a, b, size) for a, b, size in matcher.get_matching_blocks() if size]

"""Where the seconds of a run went, by area, file and test: `python -m support.durations .tools/junit.xml`."""

import sys
from collections import Counter
from collections.abc import Callable
from xml.etree.ElementTree import parse

from support.long_tests import fitting, long_patterns

_SHOWN = 40


def durations(report: str) -> dict[str, float]:
    """The seconds of each test, with its setup and teardown, by its name as in long.txt."""
    found: Counter[str] = Counter()
    for case in parse(report).iter("testcase"):
        file = case.get("classname", "").removeprefix("tests.").replace(".", "/")
        found[f"{file}.py::{case.get('name')}"] += float(case.get("time", 0))  # type: ignore[assignment]
    return dict(found)


def main(report: str) -> None:
    every = durations(report)
    long = fitting(long_patterns())
    short = {name: seconds for name, seconds in every.items() if not long.match(name)}
    print(
        f"{len(every)} tests, {sum(every.values()):.0f} worker seconds; in make test {len(short)}, {sum(short.values()):.0f}"
    )
    parts: list[tuple[str, Callable[[str], str]]] = [
        ("area", lambda name: name.partition("::")[0].partition("/")[0]),
        ("file", lambda name: name.partition("::")[0]),
        ("function", lambda name: name.partition("[")[0]),
        ("test", str),
    ]
    for title, key in parts:
        sums: dict[str, list[float]] = {}
        for name, seconds in every.items():
            one = sums.setdefault(key(name), [0, 0, 0])
            one[0] += 1
            one[1] += seconds
            one[2] += seconds if name in short else 0
        print(f"\nall s  short s  tests  {title}")
        for name, (count, total, kept) in sorted(sums.items(), key=lambda item: -item[1][2])[:_SHOWN]:
            print(f"{total:5.0f} {kept:8.1f} {count:6.0f}  {name}")


if __name__ == "__main__":
    main(sys.argv[1])

"""Run one command of a service manager: no shell, bounded in time and in what it may say."""

import subprocess
from collections.abc import Mapping, Sequence

from computer_linker.service.install.plan import ServiceManagerFailed

_DEADLINE_S = 60.0
_MAX_SAID = 100_000


def ask(argv: Sequence[str], env: Mapping[str, str], *, may_fail: bool = False) -> str:
    """What it said on stdout. Raises ServiceManagerFailed with what it said on stderr, unless `may_fail`."""
    try:
        done = subprocess.run(
            list(argv), stdin=subprocess.DEVNULL, capture_output=True, timeout=_DEADLINE_S, env=dict(env), check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ServiceManagerFailed(f"{argv[0]} did not answer: {error}") from error
    if done.returncode != 0 and not may_fail:
        said = done.stderr[:_MAX_SAID].decode("utf-8", "replace").strip().splitlines()
        raise ServiceManagerFailed(said[-1] if said else f"{argv[0]} ended with exit code {done.returncode}")
    return done.stdout[:_MAX_SAID].decode("utf-8", "replace")


def fields(text: str, between: str) -> dict[str, str]:
    """Lines of a name and a value, as managers answer."""
    found = (line.partition(between) for line in text.splitlines())
    return {name.strip(): value.strip() for name, sign, value in found if sign}

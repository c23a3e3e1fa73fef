"""The number of a command in each of its processes, which they inherit and cannot change.

Without control groups it identifies a command's orphans. Two resource limits that have no effect since Linux 2.4 carry it:
the first rises with the number, the second falls. A process may only lower its hard limits, so none can get the pair of
another command. A superuser's program that has kept CAP_SYS_RESOURCE is excepted.
"""

import resource

_RLIMIT_LOCKS = 10
"""The same on x86 and ARM; `resource` does not name it."""
_SPAN = 1 << 24
_UNLIMITED = 1 << 62


def _top(which: int) -> int:
    hard = resource.getrlimit(which)[1]
    return _UNLIMITED if hard == resource.RLIM_INFINITY else hard


_RISING, _FALLING = _top(_RLIMIT_LOCKS) - _SPAN, _top(resource.RLIMIT_RSS)
"""From what the service was started with, which may be a command of another service."""


def carry(number: int) -> None:
    """Give this process and all it starts a number. Where the service's own limits are too low, it has none."""
    if _RISING < 0 or _FALLING < _SPAN:
        return
    number %= _SPAN
    for which, value in ((_RLIMIT_LOCKS, _RISING + number), (resource.RLIMIT_RSS, _FALLING - number)):
        resource.setrlimit(which, (value, value))


def carries(pid: int, number: int) -> bool:
    """Whether a process carries this number; False when it has ended."""
    try:
        rising, falling = (resource.prlimit(pid, which)[1] for which in (_RLIMIT_LOCKS, resource.RLIMIT_RSS))
    except (ProcessLookupError, PermissionError):
        return False
    return rising - _RISING == _FALLING - falling == number % _SPAN

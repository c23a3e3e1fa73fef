"""Landlock rules for the programs that providers run: each reads only what it was given, and executes only itself."""

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import computer_linker
from computer_linker.computer.local.linux.fence import Fence, fence_around
from computer_linker.providers.child import Spec

_SYSTEM = ("/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/localtime")


def fenced(spec: Spec, read: Sequence[str | int] = ()) -> Spec:
    """The same child, able to read only `read` and its own program's files; unchanged where the kernel has no Landlock.

    A program that walks a tree by names could be led out of it by a folder swapped for a link. The rules prevent that.
    """
    own = _python_places() if spec.argv[0] == sys.executable else ()
    execute = (os.path.realpath(spec.argv[0]), *loaders())
    return replace(spec, enter=fence_around(Fence((*_SYSTEM, *own, *read), (), execute)))


@lru_cache(maxsize=1)
def loaders() -> tuple[str, ...]:
    """The system's program loaders, without which nothing linked dynamically starts."""
    return tuple(str(path) for folder in ("/lib64", "/lib") for path in Path(folder).glob("ld-*.so*"))


@lru_cache(maxsize=1)
def _python_places() -> tuple[str, ...]:
    package = Path(computer_linker.__file__).parents[1]
    return tuple(dict.fromkeys((sys.prefix, sys.base_prefix, str(package))))

"""How the scanner in Python is asked: as a child of its own, so that a hostile pattern can be ended like any other."""

import json
import sys
from dataclasses import asdict

from computer_linker.providers.child import Spec
from computer_linker.providers.search.query import NameQuery, TextQuery

_MEMORY = 512 << 20
_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "PYTHONUTF8": "1"}


def text_spec(query: TextQuery, cwd: str, *, stdin: int | None = None) -> Spec:
    """The child that searches a folder, or the file given as `stdin`."""
    return _spec({"job": "text", "stdin": stdin is not None, **asdict(query)}, cwd, stdin)


def names_spec(query: NameQuery, cwd: str) -> Spec:
    """The child that lists the files of a folder."""
    return _spec({"job": "names", **asdict(query)}, cwd, None)


def _spec(request: dict[str, object], cwd: str, stdin: int | None) -> Spec:
    # -I: the folder searched is the child's working folder, and must not become part of its import path.
    argv = [sys.executable, "-I", "-m", "computer_linker.providers.search.scanner", json.dumps(request)]
    return Spec(argv, cwd, _ENVIRONMENT, stdin=stdin, max_memory=_MEMORY)

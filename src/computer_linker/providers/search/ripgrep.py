"""The ripgrep program: its location and command lines. Patterns and globs are never parsed as options."""

import re
import sys
from enum import Enum
from functools import lru_cache
from pathlib import Path
from sysconfig import get_path

from computer_linker.policy.writers import find_program
from computer_linker.providers.child import Spec
from computer_linker.providers.search.query import Breadth, NameQuery, TextQuery
from computer_linker.system import KEPT_VARIABLES, os

_MEMORY = 128 << 20
"""More than any ordinary tree needs; a line of a gigabyte kills the child instead of exhausting memory."""

_STILL_S = 2.5
"""It reads files and writes hits, so it is never idle this long unless blocked."""

_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
_ENVIRONMENT |= {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
_ALWAYS = ("--no-config", "--no-messages", "--color=never", "--no-follow", "--no-mmap")
_ALWAYS_TEXT = (
    "--json", "--engine=default", "--regex-size-limit=16M", "--dfa-size-limit=16M",
    "--no-pre", "--no-search-zip", "--no-multiline", "--case-sensitive",
)  # fmt: skip


class Fallback(Enum):
    """Reduced modes for a tree on which a plain run fails."""

    NONE = ()
    LARGE = ("--mmap", "--no-ignore")
    """Files are mapped, so that no line has to fit into memory; .gitignore files, which may be pipes, are not read."""
    SMALL_FILES = ("--no-mmap", "--no-ignore", "--max-filesize=8M")
    """Large files are skipped: one could not be mapped, or shrank while mapped."""


@lru_cache(maxsize=1)
def program() -> str | None:
    """The ripgrep that came with this package, else the system's if it is new enough; never one found through PATH."""
    ours = find_program("rg", first=(get_path("scripts"), str(Path(sys.executable).parent)))
    return ours if ours is not None and _is_new_enough(ours) else None


def text_spec(
    rg: str,
    query: TextQuery,
    cwd: str,
    *,
    stdin: int | None = None,
    done: tuple[str, ...] = (),
    in_order: bool,
    most: int,
    fallback: Fallback = Fallback.NONE,
) -> Spec:
    """The child that searches a folder, or the file given as `stdin`."""
    argv = [rg, *_ALWAYS, *_ALWAYS_TEXT, *_breadth(query.breadth, done), *fallback.value]
    argv += ["--sort=path"] if in_order else [f"--max-count={most}"]
    if query.ignore_case:
        argv.append("--ignore-case")
    if query.fixed_strings and fallback is Fallback.NONE:
        argv.append("--fixed-strings")
    if _names_the_mark(query.pattern):
        # Otherwise ripgrep takes a byte order mark at a file's start for its encoding, and away from its text.
        argv.append("--encoding=none")
    if query.before:
        argv.append(f"--before-context={query.before}")
    if query.after:
        argv.append(f"--after-context={query.after}")
    # A stream cannot be mapped; the descriptor's path can.
    place = "./" if stdin is None else "-" if fallback is Fallback.NONE else "/dev/fd/0"
    argv += [f"--regexp={query.pattern if fallback is Fallback.NONE else _once_a_line(query)}", "--", place]
    return Spec(argv, cwd, _ENVIRONMENT, stdin=stdin, max_memory=_MEMORY, longest_still_s=_STILL_S)


def _names_the_mark(pattern: str) -> bool:
    """True for a pattern that names U+FEFF, as itself or escaped."""
    return "\ufeff" in pattern or "feff" in pattern.lower()


def _once_a_line(query: TextQuery) -> str:
    """The pattern, then the rest of the line: ripgrep stores each match of a line, of which there may be millions."""
    pattern = re.escape(query.pattern) if query.fixed_strings else query.pattern
    return f"(?:{pattern})(?-su:.)*"


def names_spec(
    rg: str,
    query: NameQuery,
    cwd: str,
    *,
    done: tuple[str, ...] = (),
    in_order: bool,
    fallback: Fallback = Fallback.NONE,
) -> Spec:
    """The child that lists the files of a folder."""
    argv = [rg, *_ALWAYS, "--files", "--null", *_breadth(query.breadth, done), *fallback.value]
    argv += ["--sort=path"] if in_order else []
    return Spec([*argv, "--", "./"], cwd, _ENVIRONMENT, max_memory=_MEMORY, longest_still_s=_STILL_S)


def holding_spec(rg: str, text: str, cwd: str, *, ignore_case: bool) -> Spec:
    """The child that lists the files that contain a literal text, in any order."""
    argv = [rg, *_ALWAYS, "--files-with-matches", "--null", "--fixed-strings", *_breadth(Breadth(), ())]
    argv += ["--ignore-case"] if ignore_case else []
    return Spec(
        [*argv, f"--regexp={text}", "--", "./"], cwd, _ENVIRONMENT, max_memory=_MEMORY, longest_still_s=_STILL_S
    )


def _breadth(breadth: Breadth, done: tuple[str, ...]) -> list[str]:
    argv = ["--no-ignore-dot", "--no-ignore-exclude", "--no-ignore-global", "--no-require-git"]
    if not breadth.gitignore:
        argv.append("--no-ignore")
    if breadth.include_hidden:
        argv.append("--hidden")
    if breadth.glob is not None:
        argv.append(f"--glob={breadth.glob}")
    # Later globs win, so what was already returned is excluded whatever the caller's glob.
    argv += [f"--glob=!{name}" for name in done]
    return argv


def _is_new_enough(path: str) -> bool:
    import subprocess

    try:
        output = subprocess.run(
            [path, "--no-config", "--version"], capture_output=True, timeout=10, env=_ENVIRONMENT, check=True
        ).stdout.decode("ascii", "replace")
        return int(output.split()[1].split(".")[0]) >= 13
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return False

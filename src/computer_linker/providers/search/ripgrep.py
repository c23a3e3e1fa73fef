"""The ripgrep program: where it is, and how it is asked. Patterns and globs are never options."""

import sys
from functools import lru_cache
from pathlib import Path

from computer_linker.providers.child import Spec, find_program
from computer_linker.providers.search.query import Breadth, NameQuery, TextQuery

_MEMORY = 128 << 20
"""More than any sane tree needs; a line of a gigabyte ends the child instead of filling the machine."""

_STILL_S = 2.5
"""It reads files and writes what it finds, so that it always has something to do."""

_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
_ALWAYS = ("--no-config", "--no-messages", "--color=never", "--no-follow", "--no-mmap")
_ALWAYS_TEXT = (
    "--json", "--engine=default", "--regex-size-limit=16M", "--dfa-size-limit=16M",
    "--no-pre", "--no-search-zip", "--no-multiline", "--case-sensitive",
)  # fmt: skip


@lru_cache(maxsize=1)
def program() -> str | None:
    """The ripgrep that came with this package, else the system's if it is new enough; never one found through PATH."""
    ours = find_program("rg", first=(str(Path(sys.prefix, "bin")), str(Path(sys.executable).parent)))
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
) -> Spec:
    """The child that searches a folder, or the file given as `stdin`."""
    argv = [rg, *_ALWAYS, *_ALWAYS_TEXT, *_breadth(query.breadth, done)]
    argv += ["--sort=path"] if in_order else [f"--max-count={most}"]
    if query.ignore_case:
        argv.append("--ignore-case")
    if query.fixed_strings:
        argv.append("--fixed-strings")
    if query.before:
        argv.append(f"--before-context={query.before}")
    if query.after:
        argv.append(f"--after-context={query.after}")
    argv += [f"--regexp={query.pattern}", "--", "-" if stdin is not None else "./"]
    return Spec(argv, cwd, _ENVIRONMENT, stdin=stdin, max_memory=_MEMORY, longest_still_s=_STILL_S)


def names_spec(rg: str, query: NameQuery, cwd: str, *, done: tuple[str, ...] = (), in_order: bool) -> Spec:
    """The child that lists the files of a folder."""
    argv = [rg, *_ALWAYS, "--files", "--null", *_breadth(query.breadth, done)]
    argv += ["--sort=path"] if in_order else []
    return Spec([*argv, "--", "./"], cwd, _ENVIRONMENT, max_memory=_MEMORY, longest_still_s=_STILL_S)


def holding_spec(rg: str, text: str, cwd: str, *, ignore_case: bool) -> Spec:
    """The child that lists the files that hold a literal text, in any order."""
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
    # Later globs win, so what was already answered stays out whatever the caller's glob says.
    argv += [f"--glob=!{name}" for name in done]
    return argv


def _is_new_enough(path: str) -> bool:
    import subprocess

    try:
        said = subprocess.run(
            [path, "--no-config", "--version"], capture_output=True, timeout=10, env=_ENVIRONMENT, check=True
        ).stdout.decode("ascii", "replace")
        return int(said.split()[1].split(".")[0]) >= 13
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return False

"""Names that Windows takes for something else than a file of that name: streams, devices, aliases."""

from typing import AnyStr

_DEVICES = frozenset(
    [
        "con",
        "prn",
        "aux",
        "nul",
        "conin$",
        "conout$",
        *(f"{port}{number}" for port in ("com", "lpt") for number in "0123456789¹²³"),
    ]
)
_PROGRAMS = (".exe", ".com")
KEPT_VARIABLES = (
    "SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "TEMP", "TMP", "USERPROFILE", "USERNAME", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA",
    "PROGRAMFILES", "NUMBER_OF_PROCESSORS", "PROCESSOR_ARCHITECTURE",
)  # fmt: skip
"""Variables without which programs of Windows do not start, or write where they should not."""


def refused_name(name: str) -> str | None:
    """Why Windows would not take this for a plain name of a file; None when it would."""
    if ":" in name:
        return "names a stream of a file, not a file"
    if any(char < " " or char in '<>"|?*\\/' for char in name):
        return "holds a character that no file name of Windows has"
    if name.rstrip(" .") != name:
        return "ends with a dot or space, which Windows drops"
    if name.partition(".")[0].rstrip(" ").casefold() in _DEVICES:
        return "is the name of a device"
    return None


def program_names(name: str) -> tuple[str, ...]:
    """The files that a program's name may stand for."""
    return (name,) if is_program_name(name) else tuple(name + ending for ending in _PROGRAMS)


def is_program_name(path: str) -> bool:
    """Whether a file of this name is a program. Batch files are not: cmd.exe runs them, and reads an argv as text of its own."""
    return path.lower().endswith(_PROGRAMS)


def slashed(path: AnyStr) -> AnyStr:
    """The path with slashes: no name has a backslash."""
    return path.replace("\\", "/") if isinstance(path, str) else path.replace(b"\\", b"/")

"""Stand-ins for tunnel programs that cannot be installed where the tests run, and how to put one in place."""

import hashlib
import sys
from pathlib import Path

_HERE = Path(__file__).parent


def install(folder: Path, name: str) -> Path:
    """A private copy of the stand-in as a program of its own, whatever Python is called on this machine."""
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    text = (_HERE / name).read_text().partition("\n")[2]
    shared = f"import sys\nsys.path.insert(0, {str(_HERE)!r})\n"
    program = folder / name
    docstring, _, rest = text.partition('"""\n\n')
    program.write_text(f'#!{sys.executable} -IS\n{docstring}"""\n\n{shared}{rest}')
    program.chmod(0o755)
    return program


def digest(program: Path) -> str:
    return hashlib.sha256(program.read_bytes()).hexdigest()

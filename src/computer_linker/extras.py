"""What the package can do only with an extra of its own, and how to add one."""

from typing import Literal

Extra = Literal["code", "desktop", "fleet", "ocr", "peers", "phone"]


def remedy(extra: Extra) -> str:
    """How a person adds the extra, as a sentence: from the package, and in a clone that `make start` set up."""
    return (
        f"Install the extra `{extra}`: pip install 'computer-linker[{extra}]' "
        f"(in a clone: .venv/bin/pip install -e '.[{extra}]')."
    )

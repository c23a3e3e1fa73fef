"""What the package can do only with an extra of its own, and how to add one."""

from typing import Literal

Extra = Literal["code", "desktop", "documents", "fleet", "heic", "ocr", "parquet", "peers", "phone", "secrets"]


def remedy(extra: Extra) -> str:
    """How a person adds the extra, as a sentence: where `make install` put the program, and where `make start` set it up."""
    return (
        f"Install the extra `{extra}`, in the checkout: make install EXTRAS={extra} "
        f"(for make start: .venv/bin/pip install -e '.[{extra}]')."
    )

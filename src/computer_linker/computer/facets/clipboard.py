"""Clipboard: reading, writing and restoring its content."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class Clip:
    """One clipboard content in every form its owner offers, by media type (`text/plain`, `image/png`, ...)."""

    forms: dict[str, bytes]

    @property
    def text(self) -> str | None:
        """The text, where there is one."""
        raw = self.forms.get("text/plain")
        return None if raw is None else raw.decode("utf-8", errors="replace")


def text_clip(text: str) -> Clip:
    """A content of plain text."""
    return Clip({"text/plain": text.encode()})


class Clipboard(Protocol):
    """The desktop's clipboard."""

    async def types(self) -> list[str]:
        """The media types on offer; empty when the clipboard is."""
        ...

    async def read(self, media_type: str = "text/plain", *, max_bytes: int = 32_000_000) -> bytes | None:
        """The content in one form; None when it is not on offer.

        Raises:
            LimitExceeded: it is larger than `max_bytes`.
        """
        ...

    async def write(self, clip: Clip) -> None:
        """Replace the content; it stays for as long as this computer is open."""
        ...

    async def snapshot(self, *, max_bytes: int = 32_000_000) -> Clip:
        """The content in the forms that can be restored later (text, images, file lists)."""
        ...

    async def taken(self, timeout_s: float) -> bool | None:
        """Wait until the focused application fetched the last written content. None where this is not observable."""
        ...


@runtime_checkable
class WithPrimary(Protocol):
    """What a clipboard has where there is a second selection, which older terminals paste: that of X11 alone."""

    primary: Clipboard | None


async def every_form(clipboard: Clipboard, max_bytes: int) -> Clip:
    """Read every form a clipboard offers. Raises LimitExceeded when their total exceeds the limit."""
    forms: dict[str, bytes] = {}
    for media_type in await clipboard.types():
        raw = await clipboard.read(media_type, max_bytes=max_bytes)
        if raw is not None:
            forms[media_type] = raw
            max_bytes -= len(raw)
    return Clip(forms)

"""The macOS facets of a computer. Unproven: written against Apple's interfaces, never yet run on a Mac."""

from anyio import to_thread

from computer_linker.computer.base import Computer
from computer_linker.computer.facets.clipboard import Clip, every_form
from computer_linker.computer.local.macos.input import MacKeyboard, MacPointer
from computer_linker.computer.local.macos.screen import MacScreen
from computer_linker.computer.local.macos.windows import MacWindows
from computer_linker.computer.manifest import Absent
from computer_linker.errors import ExecutionFailed, LimitExceeded

_TYPES = {"text/plain": "public.utf8-plain-text", "text/html": "public.html", "image/png": "public.png"}


class MacClipboard:
    """Text, HTML and PNG of the general pasteboard."""

    async def types(self) -> list[str]:
        """The media types on offer that can be read here."""
        return await to_thread.run_sync(_types)

    async def read(self, media_type: str = "text/plain", *, max_bytes: int = 32_000_000) -> bytes | None:
        """The content in one form."""
        raw = await to_thread.run_sync(_read, media_type)
        if raw is not None and len(raw) > max_bytes:
            raise LimitExceeded(f"The clipboard holds more than {max_bytes} bytes.", maxBytes=max_bytes)
        return raw

    async def write(self, clip: Clip) -> None:
        """Replace the content."""
        await to_thread.run_sync(_write, clip.forms)

    async def snapshot(self, *, max_bytes: int = 32_000_000) -> Clip:
        """The forms that can be restored."""
        return await every_form(self, max_bytes)

    async def taken(self, timeout_s: float) -> bool | None:
        """Not observable on macOS."""
        return None


def _types() -> list[str]:
    import AppKit

    offered = AppKit.NSPasteboard.generalPasteboard().types() or []
    return [media for media, name in _TYPES.items() if name in offered]


def _read(media_type: str) -> bytes | None:
    import AppKit

    name = _TYPES.get(media_type)
    data = None if name is None else AppKit.NSPasteboard.generalPasteboard().dataForType_(name)
    return None if data is None else bytes(data)


def _write(forms: dict[str, bytes]) -> None:
    import AppKit

    board = AppKit.NSPasteboard.generalPasteboard()
    board.clearContents()
    for media_type, raw in forms.items():
        if media_type in _TYPES and not board.setData_forType_(raw, _TYPES[media_type]):
            raise ExecutionFailed("macOS did not take the clipboard's content.")


def provide_macos(computer: Computer) -> None:
    """Provide the macOS facets; each reports `is_proven: false` until its tests have run on a Mac."""
    computer.provide("screen", MacScreen(), backend="quartz", is_proven=False)
    computer.provide("pointer", MacPointer(), backend="quartz", is_proven=False)
    computer.provide("keyboard", MacKeyboard(), backend="quartz", is_proven=False)
    computer.provide("windows", MacWindows(), backend="quartz", is_proven=False)
    computer.provide("clipboard", MacClipboard(), backend="appkit", is_proven=False)
    for facet in ("apps", "accessibility", "notifications"):
        computer.provide(facet, Absent(facet, f"On macOS, {facet} are not built yet."), backend="")

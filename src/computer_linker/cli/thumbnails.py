"""Small pictures of the evidence, by the operation that left it, for pages of the history."""

import base64
import io
from collections.abc import Collection

from computer_linker.cli.places import state_home

_MAX_PICTURES = 150
_SIDE = 320


def thumbnails(operations: Collection[str]) -> dict[str, list[str]]:
    """Pictures as data addresses, by operation or execution; none where nothing is kept or no picture can be made smaller."""
    from computer_linker.artifacts.store import ArtifactStore, Filter

    folder = state_home() / "artifacts"
    if not (folder / "artifacts.db").is_file():
        return {}
    store = ArtifactStore(folder, only_to_read=True)
    found: dict[str, list[str]] = {}
    try:
        shown = [one for one in store.listed(Filter(kind="screenshot"), 2000) if one.operation in operations]
        for one in reversed(shown[:_MAX_PICTURES]):
            small = _smaller(store.content(one))
            if small:
                found.setdefault(one.operation, []).append("data:image/jpeg;base64," + base64.b64encode(small).decode())
    finally:
        store.close()
    return found


def _smaller(picture: bytes) -> bytes:
    try:
        from PIL import Image
    except ImportError:
        return b""
    out = io.BytesIO()
    try:
        with Image.open(io.BytesIO(picture), formats=("PNG", "JPEG", "WEBP")) as image:
            image.thumbnail((_SIDE, _SIDE))
            image.convert("RGB").save(out, "JPEG", quality=70)
    except (OSError, ValueError, Image.DecompressionBombError):
        return b""
    return out.getvalue()

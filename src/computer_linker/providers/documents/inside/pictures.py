"""Pictures sized for the client: as they are where they fit, else scaled and encoded anew."""

import io
from typing import Any, BinaryIO

from computer_linker.providers.documents.inside.base import Payload, Refused, Request, damaged, invalid, missing

_MAX_PIXELS = 120_000_000
_AS_IS = {"PNG": "image/png", "JPEG": "image/jpeg", "GIF": "image/gif", "WEBP": "image/webp"}
_MAX_SVG = 10 << 20
_HEIC = frozenset((b"heic", b"heix", b"heim", b"heis", b"hevc", b"mif1", b"msf1"))


def picture(file: BinaryIO, request: Request) -> Payload:
    """A picture that Pillow reads; HEIC and AVIF where it or a plugin of it does."""
    from contextlib import suppress

    try:
        from PIL import Image, ImageFile
    except ImportError:
        raise missing("pillow", "A picture") from None
    with suppress(ImportError):
        from pillow_heif import register_heif_opener

        register_heif_opener()
    Image.MAX_IMAGE_PIXELS = _MAX_PIXELS
    ImageFile.LOAD_TRUNCATED_IMAGES = False
    try:
        image: Any = Image.open(file)
        width, height = image.size
        if width * height > _MAX_PIXELS:
            raise Refused("limit_exceeded", f"The picture has {width} x {height} pixels, more than are decoded.")
        facts = {"format": image.format, "width": width, "height": height}
        if getattr(image, "n_frames", 1) > 1:
            facts["frames"] = image.n_frames
        size = file.seek(0, 2)
        if image.format in _AS_IS and max(width, height) <= request.max_edge and size <= request.max_image_bytes:
            file.seek(0)
            return Payload("picture", {**facts, "mime": _AS_IS[image.format]}, file.read())
        file.seek(0)
        image = Image.open(file)
        image.draft("RGB", (request.max_edge, request.max_edge))
        return fitted(image, request, facts)
    except Refused:
        raise
    except Image.DecompressionBombError:
        raise Refused("limit_exceeded", "The picture has more pixels than are decoded.") from None
    except MemoryError:
        raise Refused("limit_exceeded", "The picture needs more memory than a decoder may use.") from None
    except (OSError, ValueError, SyntaxError, TypeError, IndexError, KeyError, EOFError, ArithmeticError) as error:
        if "cannot identify" in str(error):
            file.seek(8)
            if file.read(4) in _HEIC:
                raise missing("pillow-heif", "A HEIC picture") from None
            raise invalid("This is no picture that can be decoded here.") from None
        raise damaged(f"the picture cannot be decoded ({str(error)[:200]})") from None


def fitted(image: Any, request: Request, facts: dict[str, Any]) -> Payload:
    """The image scaled to the client's largest edge, as PNG, or as JPEG where that would be too large."""
    from PIL import Image, ImageOps

    image = ImageOps.exif_transpose(image)
    if image.mode not in ("RGB", "RGBA", "L"):
        image = image.convert("RGBA" if "A" in image.getbands() or "transparency" in image.info else "RGB")
    if max(image.size) > request.max_edge:
        image.thumbnail((request.max_edge, request.max_edge), Image.Resampling.BOX)
    out = io.BytesIO()
    image.save(out, "PNG")
    mime = "image/png"
    if out.tell() > min(request.max_image_bytes, 1_000_000):
        flat = Image.new("RGB", image.size, "white")
        flat.paste(image, mask=image.getchannel("A") if image.mode == "RGBA" else None)
        out = io.BytesIO()
        flat.save(out, "JPEG", quality=85)
        mime = "image/jpeg"
    shown = {"shownWidth": image.size[0], "shownHeight": image.size[1], "mime": mime}
    return Payload("picture", {**facts, **shown}, out.getvalue())


def svg(file: BinaryIO, request: Request) -> Payload:
    """An SVG drawing, rasterised. What it refers to outside itself is never loaded: there is nothing to load it from."""
    try:
        import resvg_py
    except ImportError:
        raise missing("resvg-py", "An SVG drawing") from None
    from computer_linker.providers.documents.inside.markup import tree

    content = file.read(_MAX_SVG + 1)
    if len(content) > _MAX_SVG:
        raise Refused("limit_exceeded", "The drawing is larger than is decoded.")
    if content[:2] == b"\x1f\x8b":
        raise invalid("A compressed drawing is not shown.")
    # Parsed first by a reader that refuses entities: the rasteriser expands them.
    root = tree(content)
    if root.name != "svg":
        raise invalid("This is no SVG drawing.")
    width, height = _drawn_size(root.attributes)
    scale: dict[str, Any] = {"width": request.max_edge} if width >= height else {"height": request.max_edge}
    if 0 < max(width, height) <= request.max_edge:
        scale = {}
    try:
        image = bytes(resvg_py.svg_to_bytes(svg_string=content.decode("utf-8"), **scale))
    except (ValueError, RuntimeError, UnicodeDecodeError) as error:
        raise damaged(f"the drawing cannot be rasterised ({str(error)[:200]})") from None
    return Payload("picture", {"format": "SVG", "mime": "image/png"}, image)


def _drawn_size(attributes: dict[str, str]) -> tuple[float, float]:
    def number(text: str) -> float:
        try:
            return float(text.rstrip("pxtminc%"))
        except ValueError:
            return 0.0

    box = attributes.get("viewBox", "").replace(",", " ").split()
    width, height = number(attributes.get("width", "")), number(attributes.get("height", ""))
    if (not width or not height or "%" in attributes.get("width", "")) and len(box) == 4:
        return number(box[2]), number(box[3])
    return width, height

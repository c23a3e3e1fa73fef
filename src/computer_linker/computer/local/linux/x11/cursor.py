"""The mouse cursor drawn into a capture; the server leaves it out of images."""

from typing import TYPE_CHECKING, Any

from computer_linker.computer.facets.screen import Pixmap

if TYPE_CHECKING:
    from Xlib.display import Display


def drawn_on(display: "Display", pixmap: Pixmap) -> Pixmap:
    """The same pixels with the cursor where it is; unchanged where XFixes is missing."""
    if not display.has_extension("XFIXES"):
        return pixmap
    display.xfixes_query_version()
    image = display.xfixes_get_cursor_image(display.screen().root)
    left, top = image.x - image.xhot - pixmap.area.x, image.y - image.yhot - pixmap.area.y
    pixels = bytearray(pixmap.data)
    for row in range(image.height):
        for column in range(image.width):
            x, y = left + column, top + row
            if 0 <= x < pixmap.width and 0 <= y < pixmap.height:
                _blend(pixels, y * pixmap.stride + x * 4, image.cursor_image[row * image.width + column])
    return Pixmap(pixmap.width, pixmap.height, pixmap.stride, bytes(pixels), pixmap.area)


def _blend(pixels: bytearray, at: int, argb: Any) -> None:
    alpha = argb >> 24 & 255
    if alpha == 0:
        return
    for offset, shift in ((0, 0), (1, 8), (2, 16)):
        # The cursor's colours are already multiplied by its alpha.
        pixels[at + offset] = min(255, (argb >> shift & 255) + pixels[at + offset] * (255 - alpha) // 255)

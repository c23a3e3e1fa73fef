"""Encoding, fitting and masking pictures, and hiding what must not be seen."""

import io
import random

import numpy
import pytest
from PIL import Image

from computer_linker.computer.facets.screen import Pixmap
from computer_linker.model.geometry import Rect, Window
from computer_linker.providers.images import Fit, encode, encode_png, to_image
from computer_linker.providers.shots import MAX_FRAMES, Frames, cut, excluded_areas, masked


def noise(width: int, height: int, padding: int = 0) -> Pixmap:
    data = random.Random(7).randbytes((width * 4 + padding) * height)  # a picture, not a secret
    return Pixmap(width, height, width * 4 + padding, data, Rect(x=10, y=20, width=width, height=height))


@pytest.mark.parametrize(("width", "height"), [(1, 1), (3, 200), (640, 64), (333, 65), (2, 1)])
@pytest.mark.parametrize("padding", [0, 12])
def test_a_png_holds_exactly_the_pixels(width: int, height: int, padding: int) -> None:
    pixmap = noise(width, height, padding)
    for smaller in (False, True):
        image = Image.open(io.BytesIO(encode_png(pixmap, smaller=smaller)))
        image.load()
        assert numpy.array_equal(numpy.array(image), numpy.array(to_image(pixmap)))


@pytest.mark.parametrize("form", ["png", "jpeg", "webp"])
def test_even_a_picture_of_noise_fits_the_limit(form: str) -> None:
    image = encode(noise(1600, 1200), form, Fit())  # type: ignore[arg-type]  # one of them
    assert len(image.data) <= 1_000_000
    assert Image.open(io.BytesIO(image.data)).size == (image.map.width, image.map.height)
    assert image.map.area == Rect(x=10, y=20, width=1600, height=1200)


def test_a_large_picture_is_made_to_fit_and_a_small_one_left_alone() -> None:
    wide = Pixmap(5000, 100, 20_000, bytes(2_000_000), Rect(x=0, y=0, width=5000, height=100))
    assert (encode(wide).map.width, encode(wide).map.height) == (2000, 40)
    assert encode(noise(30, 20), "png", Fit(10**9, 10**9)).map.width == 30


def test_a_mask_covers_its_area_and_nothing_else() -> None:
    pixmap = Pixmap(100, 80, 400, b"\xff" * 32_000, Rect(x=50, y=50, width=100, height=80))
    image = to_image(masked(pixmap, [Rect(x=60, y=70, width=10, height=5), Rect(x=0, y=0, width=10, height=10)]))
    assert sorted(image.getcolors() or []) == [(50, (96, 96, 96)), (7950, (255, 255, 255))]
    assert image.getpixel((10, 20)) == (96, 96, 96)


def test_a_cut_keeps_its_place() -> None:
    part = cut(noise(100, 80), Rect(x=90, y=70, width=50, height=50))
    assert (part.width, part.height, part.area) == (10, 10, Rect(x=100, y=90, width=10, height=10))


def window(name: str, bounds: Rect, *, frame: Rect | None = None) -> Window:
    return Window(
        id=name, title=name, app=name, pid=1, process="", bounds=bounds, frame=frame or bounds, is_focused=False,
        is_visible=True,
    )  # fmt: skip


def test_an_excluded_window_is_hidden_where_it_shows_and_not_where_another_covers_it() -> None:
    stack = [
        window("over", Rect(x=0, y=0, width=50, height=100)),
        window("Bank", Rect(x=0, y=0, width=100, height=100)),
    ]
    hidden = excluded_areas(stack, ["bank*"])
    assert hidden == [Rect(x=50, y=0, width=50, height=100)]
    assert excluded_areas(stack, ["other"]) == []


def test_an_excluded_window_with_a_shadow_is_hidden_whole() -> None:
    bounds, frame = Rect(x=0, y=0, width=100, height=100), Rect(x=10, y=10, width=80, height=80)
    assert excluded_areas([window("bank", bounds, frame=frame)], ["bank"]) == [bounds]


def test_frames_are_bounded() -> None:
    frames = Frames()
    pixmap = noise(4, 4)
    first = frames.keep("s", pixmap.map, [], [])
    for _ in range(MAX_FRAMES):
        last = frames.keep("s", pixmap.map, [], [])
    assert frames.find(last.id, scope="s") is last
    with pytest.raises(Exception, match="no such frame"):
        frames.find(first.id, scope="s")

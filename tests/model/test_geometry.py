"""Points and rectangles: what is seen in an image is what is clicked on the desktop."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from pydantic import ValidationError

from computer_linker.errors import InvalidRequest
from computer_linker.model.geometry import ImageMap, Point, Rect

sides = some.integers(1, 4000)
places = some.integers(-5000, 5000)
patiently = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
rects = some.builds(Rect, x=places, y=places, width=sides, height=sides)


@patiently
@given(
    area=rects,
    width=sides,
    height=sides,
    across=some.floats(0, 1, exclude_max=True),
    down=some.floats(0, 1, exclude_max=True),
)
def test_every_point_of_an_image_lies_in_the_area_it_shows(
    area: Rect, width: int, height: int, across: float, down: float
) -> None:
    image = ImageMap(width=width, height=height, area=area)
    x, y = min(across * width, width - 1e-6), min(down * height, height - 1e-6)
    place = image.to_desktop(Point(x=x, y=y))
    assert area.contains(place)


@patiently
@given(area=rects, factor=some.sampled_from([0.25, 0.5, 1.0, 2.0, 3.0]))
def test_a_whole_pixel_maps_back_to_itself(area: Rect, factor: float) -> None:
    width, height = max(1, round(area.width * factor)), max(1, round(area.height * factor))
    image = ImageMap(width=width, height=height, area=area)
    place = image.to_desktop(Point(x=width // 2, y=height // 2))
    spot = Rect(x=int(place.x // 1), y=int(place.y // 1), width=1, height=1)
    shown = image.to_image(spot)
    assert abs(shown.x - width // 2) <= max(1, round(width / area.width))


@pytest.mark.parametrize(("x", "y"), [(-1, 0), (0, -0.1), (100, 0), (0, 50), (1e5, 1e5)])
def test_a_point_outside_the_image_is_refused(x: float, y: float) -> None:
    with pytest.raises(InvalidRequest):
        ImageMap(width=100, height=50, area=Rect(x=0, y=0, width=100, height=50)).to_desktop(Point(x=x, y=y))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e9, "5", True, None])
def test_a_coordinate_that_is_no_place_is_refused(value: object) -> None:
    with pytest.raises(ValidationError):
        Point.from_wire({"x": value, "y": 0})


@patiently
@given(first=rects, second=rects)
def test_what_two_rectangles_share_lies_in_both(first: Rect, second: Rect) -> None:
    shared = first.intersection(second)
    assert shared == second.intersection(first) or shared.is_empty
    if not shared.is_empty:
        assert first.intersection(shared) == shared == second.intersection(shared)

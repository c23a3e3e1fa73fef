"""What a picture must not show: password fields, and windows whose application does not say where they are."""

import base64
import io
from typing import Any

import pytest
from PIL import Image

from support.forms import frozen
from support.session import Session

pytestmark = [pytest.mark.anyio, pytest.mark.desktop]
GREY = (0x60, 0x60, 0x60)


async def shown(session: Session, op: str, target: str) -> tuple[Image.Image, dict[str, Any]]:
    envelope = await session.call(op, target, options={"return": "base64"})
    assert envelope["ok"], envelope
    image = Image.open(io.BytesIO(base64.b64decode(envelope["data"]["bytesBase64"]))).convert("RGB")
    return image, envelope


async def window_of(session: Session) -> dict[str, Any]:
    windows = (await session.data("window.list"))["windows"]
    return next(one for one in windows if session.form.title in one["title"])


def middle(bounds: dict[str, int]) -> tuple[int, int]:
    return bounds["x"] + bounds["width"] // 2, bounds["y"] + bounds["height"] // 2


async def test_a_password_field_is_painted_over_in_every_toolkit(session: Session) -> None:
    fields = [one for one in await session.find("password") if one.get("bounds")]
    image, _ = await shown(session, "screen.capture", "primary")
    assert fields
    assert all(image.getpixel(middle(one["bounds"])) == GREY for one in fields)
    other = (await session.find("button", "Press me"))[0]
    assert image.getpixel(middle(other["bounds"])) != GREY


async def test_a_window_whose_application_does_not_answer_is_painted_over(session: Session) -> None:
    window = await window_of(session)
    await session.data("window.focus", window["id"])
    with frozen(session.form):
        image, envelope = await shown(session, "screen.capture", "primary")
        alone, _ = await shown(session, "screen.capture_window", window["id"])
    assert image.getpixel(middle(window["bounds"])) == GREY
    assert alone.getcolors() == [(alone.width * alone.height, GREY)]
    assert any("painted over whole" in warning for warning in envelope["warnings"])
    image, envelope = await shown(session, "screen.capture", "primary")
    assert not any("painted over whole" in warning for warning in envelope["warnings"])
    assert image.getpixel(middle(window["bounds"])) != GREY

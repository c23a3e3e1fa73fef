"""File bytes as text and back, whatever their encoding: bytes that are not UTF-8 become lone surrogates and return unchanged."""

import base64
import binascii
from typing import Literal

from computer_linker.errors import InvalidRequest

_ESCAPED = "surrogateescape"


def as_text(data: bytes) -> str:
    """The bytes as text that `as_bytes` turns back exactly."""
    return data.decode("utf-8", _ESCAPED)


def as_bytes(text: str) -> bytes:
    """The bytes of a text that came from `as_text`, or of plain text."""
    return text.encode("utf-8", _ESCAPED)


def readable(text: str) -> str:
    """The text with a replacement character for each byte that is not UTF-8, for an answer."""
    return as_bytes(text).decode("utf-8", "replace")


def given_text(text: str, encoding: Literal["utf8", "base64"], field: str) -> str:
    """The text of a request. Raises InvalidRequest for bad base64 and for a lone surrogate: no client names a byte by one."""
    try:
        if encoding == "base64":
            return as_text(base64.b64decode(text.encode("ascii"), validate=True))
        text.encode("utf-8")
    except binascii.Error:
        raise InvalidRequest(f"`{field}` is not base64.", field=field) from None
    except UnicodeEncodeError:
        raise InvalidRequest(f"`{field}` holds characters that no encoded text has.", field=field) from None
    return text

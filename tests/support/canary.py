"""A secret to look for, and a search that undoes the usual encodings by itself."""

import base64
import gzip
import html
import json
import re
import urllib.parse
import zlib
from collections.abc import Callable, Iterator

CANARY = "tok_C4naryV/lue+0123456789abcdefXYZ"
_RUN = {
    "base64": re.compile(rb"[A-Za-z0-9+/_-]{16,}"),
    "base32": re.compile(rb"[A-Za-z2-7]{24,}"),
    "hex": re.compile(rb"(?:[0-9A-Fa-f]{2}[ :]?){16,}"),
}
_WRAPS = re.compile(rb"\\n|\\r|\s")


def is_in(data: bytes | str, secret: str = CANARY) -> bool:
    """Whether the secret is there, as it is or encoded."""
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    wanted = secret.encode()
    return any(wanted in view or wanted.lower() in view.lower() for view in _views(raw))


def is_key_in(data: bytes, part: bytes) -> bool:
    """Whether bytes are there, as they are or in base64 or hex, also broken into lines."""
    return part in data or any(part in view for whole in (data, _WRAPS.sub(b"", data)) for view in _decoded(whole))


def _views(raw: bytes) -> Iterator[bytes]:
    text = raw.decode("utf-8", "replace")
    yield raw
    yield raw[::-1]
    yield raw.replace(b"\0", b"")
    yield urllib.parse.unquote_to_bytes(raw)
    yield urllib.parse.unquote_to_bytes(urllib.parse.unquote_to_bytes(raw))
    yield html.unescape(text).encode()
    yield re.sub(rb"\\u00([0-9A-Fa-f]{2})|\\x([0-9A-Fa-f]{2})", lambda m: bytes.fromhex((m[1] or m[2]).decode()), raw)
    yield re.sub(rb"\\([0-7]{3})", lambda m: bytes((int(m[1], 8) & 255,)), raw)
    yield re.sub(rb"=([0-9A-F]{2})", lambda m: bytes.fromhex(m[1].decode()), raw)
    yield bytes(int(number) for number in re.findall(r"\d+", text) if int(number) < 256)
    yield raw.replace(b"\\/", b"/").replace(b"\\\\", b"\\")
    for whole in (raw, _WRAPS.sub(b"", raw)):
        yield from _decoded(whole)


def _decoded(raw: bytes) -> Iterator[bytes]:
    for run in _RUN["hex"].findall(raw):
        yield bytes.fromhex(re.sub(rb"[ :]", b"", run).decode())
    for run in _RUN["base64"].findall(raw):
        plain = run.replace(b"-", b"+").replace(b"_", b"/")
        for at in range(4):
            part = plain[at : at + (len(plain) - at) // 4 * 4]
            yield base64.b64decode(part)
            twice = base64.b64decode(part)
            if re.fullmatch(rb"[A-Za-z0-9+/]{16,}", twice[: len(twice) // 4 * 4]):
                yield base64.b64decode(twice[: len(twice) // 4 * 4])
    for run in _RUN["base32"].findall(raw):
        for at in range(8):
            part = run.upper()[at : at + (len(run) - at) // 8 * 8]
            yield base64.b32decode(part)


def _b64(shift: int) -> Callable[[bytes], bytes]:
    return lambda raw: base64.b64encode(b"user:"[:shift] + raw + b":end")


def _b32(shift: int) -> Callable[[bytes], bytes]:
    return lambda raw: base64.b32encode(b"users"[:shift] + raw + b"end!!")


ENCODINGS: dict[str, Callable[[bytes], bytes]] = {
    "plain": lambda raw: raw,
    "upper": bytes.upper,
    "lower": bytes.lower,
    "swapped case": bytes.swapcase,
    "reversed": lambda raw: raw[::-1],
    "in json": lambda raw: json.dumps({"token": raw.decode()}).encode(),
    "json with escaped slashes": lambda raw: raw.replace(b"/", b"\\/"),
    "json in json": lambda raw: json.dumps(json.dumps({"token": raw.decode()})).encode(),
    "json escapes": lambda raw: b"".join(b"\\u%04x" % byte for byte in raw),
    "upper json escapes": lambda raw: b"".join(b"\\u%04X" % byte for byte in raw),
    "quoted": lambda raw: urllib.parse.quote(raw, safe="").encode(),
    "quoted in lower case": lambda raw: urllib.parse.quote(raw, safe="").lower().encode(),
    "quoted but slashes": lambda raw: urllib.parse.quote(raw).encode(),
    "quoted form": lambda raw: urllib.parse.quote_plus(raw).encode(),
    "quoted twice": lambda raw: urllib.parse.quote(urllib.parse.quote(raw, safe=""), safe="").encode(),
    "every byte quoted": lambda raw: b"".join(b"%%%02X" % byte for byte in raw),
    "every byte quoted in lower case": lambda raw: b"".join(b"%%%02x" % byte for byte in raw),
    "html": lambda raw: html.escape(raw.decode()).encode(),
    "html numbers": lambda raw: b"".join(b"&#%d;" % byte for byte in raw),
    "html hex": lambda raw: b"".join(b"&#x%x;" % byte for byte in raw),
    "c escapes": lambda raw: b"".join(b"\\x%02x" % byte for byte in raw),
    "octal": lambda raw: b"".join(b"\\%03o" % byte for byte in raw),
    "quoted printable": lambda raw: b"".join(b"=%02X" % byte for byte in raw),
    "numbers": lambda raw: b",".join(b"%d" % byte for byte in raw),
    "spaced numbers": lambda raw: b", ".join(b"%d" % byte for byte in raw),
    "hex": lambda raw: raw.hex().encode(),
    "upper hex": lambda raw: raw.hex().upper().encode(),
    "spaced hex": lambda raw: raw.hex(" ").encode(),
    "hex with colons": lambda raw: raw.hex(":").encode(),
    "utf-16": lambda raw: raw.decode().encode("utf-16-le"),
    "utf-16 big endian": lambda raw: raw.decode().encode("utf-16-be"),
    **{f"base64 after {shift}": _b64(shift) for shift in range(4)},
    **{f"base64 of the web after {shift}": (lambda one: lambda raw: one(raw).replace(b"+", b"-").replace(b"/", b"_"))(_b64(shift)) for shift in range(3)},
    "wrapped base64": lambda raw: base64.encodebytes(b"x" * 40 + raw),
    "wrapped base64 in json": lambda raw: json.dumps(base64.encodebytes(b"x" * 41 + raw).decode()).encode(),
    "wrapped hex": lambda raw: b"\n".join((raw.hex()[:30].encode(), raw.hex()[30:].encode())),
    "base64 twice": lambda raw: base64.b64encode(base64.b64encode(raw)),
    **{f"base32 after {shift}": _b32(shift) for shift in range(5)},
    "a basic login": lambda raw: b"Basic " + base64.b64encode(b"user:" + raw),
    "many": lambda raw: b" ".join([raw] * 50),
    "between words": lambda raw: b"a" * 70_000 + raw + b"b" * 70_000,
    "after its own beginning": lambda raw: raw[:20] + raw + raw[:20],
}  # fmt: skip
"""Ways in which a host, a program or a tool may write the secret."""

COMPRESSED: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "deflate": zlib.compress}

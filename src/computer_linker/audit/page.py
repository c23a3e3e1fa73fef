"""The timeline as one self-contained page: data as JSON, drawn by its own script, nothing fetched."""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files

from computer_linker.audit.parts import without_parts
from computer_linker.audit.wording import described
from computer_linker.model.history import HistoryEvent

MAX_EVENTS = 20_000
"""More would make the page slow; the newest are shown, with a note."""


def timeline_page(
    events: Sequence[HistoryEvent], *, title: str, left_out: int = 0, pictures: Mapping[str, list[str]] | None = None
) -> str:
    """Return the page. Every text in it is data: the script sets it as text, it is never parsed as markup.

    `pictures` maps operation ids to data URLs of their screenshots.
    """
    style, script, body = (_part(name) for name in ("page.css", "page.js", "page.html"))
    shown = [{**event, "words": described(event)._asdict()} for event in without_parts(events)]
    whole = {"title": title, "leftOut": left_out, "events": shown, "pictures": pictures or {}}
    data = json.dumps(whole, separators=(",", ":"))
    allowed = f"style-src '{_hash(style)}'; script-src '{_hash(script)}'; img-src data:"
    policy = f"default-src 'none'; {allowed}; base-uri 'none'"
    values = {
        "POLICY": policy,
        "STYLE": style,
        "SCRIPT": script,
        # Last, because it may hold anything; neither `</script>` nor `<!--` can occur in it.
        "DATA": data.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"),
    }
    for name, value in values.items():
        before, _, after = body.partition(f"@{name}@")
        body = before + value + after
    return body


def _part(name: str) -> str:
    return files("computer_linker.audit").joinpath("assets", name).read_text("utf-8").strip()


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")

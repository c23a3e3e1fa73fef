"""The acts of one run: what the service said of each, what its application's own record shows, and the figures."""

import json
import os
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import anyio

from support.desktop import Desktop
from support.road import LOCAL, Road

Fact = Literal["happened", "nothing", "elsewhere"]
"""What the application's own record shows: the act's effect, no change, or another change."""
Oracle = Callable[[], Awaitable[Fact]]
Kind = Literal["live", "silent", "dead", "refused", "either"]
"""live: must happen and shows. silent: must happen and cannot show. dead: nothing can happen. refused: must be refused.
either: may be refused or happen, and what is said must be true."""


@dataclass(frozen=True)
class Act:
    """One act, what was said of it and what its application's record shows."""

    app: str
    what: str
    kind: Kind
    op: str
    fact: Fact
    said: str
    seconds: float
    is_described: bool
    """Whether the application describes its controls."""
    note: str = ""

    @property
    def is_false_confirmed(self) -> bool:
        return self.said == "confirmed" and self.fact != "happened"

    @property
    def is_false_noop(self) -> bool:
        return self.said == "suspected_noop" and self.fact == "happened"

    @property
    def is_false_refusal(self) -> bool:
        return self.said not in _EFFECTS and self.fact != "nothing"

    @property
    def is_missed(self) -> bool:
        return self.kind in ("live", "silent") and self.fact == "nothing"

    @property
    def is_unseen(self) -> bool:
        """Whether it happened, shows and is described, and was not seen."""
        return self.kind == "live" and self.is_described and (self.fact, self.said) == ("happened", "unverifiable")

    @property
    def is_text(self) -> bool:
        return self.op == "desktop.type_text"

    @property
    def is_wrong(self) -> bool:
        return self.is_false_confirmed or self.is_false_noop or self.is_false_refusal or self.fact == "elsewhere"


_EFFECTS = ("confirmed", "partial", "suspected_noop", "unverifiable")


@dataclass
class Book:
    """All acts of one run, on one desktop."""

    road: Road
    desktop: Desktop
    folder: Path
    share: float = 1.0
    """How many of the full number of acts to do."""
    acts: list[Act] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    app: str = ""
    is_described: bool = True

    def times(self, full: int, least: int = 1) -> range:
        return range(max(least, round(full * self.share)))

    async def act(
        self,
        what: str,
        kind: Kind,
        oracle: Oracle,
        op: str,
        target: Any = None,
        *,
        principal: Any = LOCAL,
        **parts: Any,
    ) -> dict[str, Any]:
        """Do one act and judge it."""
        began = time.monotonic()
        reply = await self.road.call(op, target, scope="desk", principal=principal, **parts)
        took = time.monotonic() - began
        self.note(what, kind, op, await oracle(), reply, took)
        return reply

    def note(self, what: str, kind: Kind, op: str, fact: Fact, reply: dict[str, Any], took: float) -> None:
        """Record an act that was done and judged elsewhere."""
        said = reply["effect"] if reply["ok"] else reply["error"]["code"]
        note = reply["data"].get("method", "") if reply["ok"] else reply["error"]["message"]
        self.acts.append(Act(self.app, what, kind, op, fact, said, took, self.is_described, note))

    async def until(self, route: dict[str, Any], **selector: Any) -> list[dict[str, Any]]:
        """The elements that match, once there are any."""
        found = await self.road.data(
            "desktop.wait_until", route, scope="desk",
            input={"condition": {"selectorExists": selector}}, options={"timeoutSeconds": 50},
        )  # fmt: skip
        elements: list[dict[str, Any]] = found["elements"]
        return elements

    async def shows(self, app: str, **selector: Any) -> list[dict[str, Any]]:
        """The elements of an application that match, once there are any."""
        return await self.until({"app": app}, **selector)


@dataclass(frozen=True)
class Figures:
    """The figures of a run, each with its bar."""

    acts: list[Act]

    def rows(self) -> list[tuple[str, float, float]]:
        """Name, figure and the most it may be; rates in percent."""
        live = [act for act in self.acts if act.kind == "live" and act.is_described]
        must = [act for act in self.acts if act.kind in ("live", "silent")]
        clicks = sorted(act.seconds for act in self.acts if act.op == "desktop.click" and act.kind == "live")
        happened = [act for act in self.acts if act.fact == "happened"]
        return [
            ("false confirmed", sum(act.is_false_confirmed for act in self.acts), 0),
            ("false suspected_noop, % of what happened", _percent([act.is_false_noop for act in happened]), 1),
            ("refused, yet happened", sum(act.is_false_refusal for act in self.acts), 0),
            (
                "unverifiable, % of what shows and is described",
                _percent([act.is_unseen for act in live if act.fact == "happened"]),
                5,
            ),
            ("missed, % of what should happen", _percent([act.is_missed for act in must]), 2),
            ("wrong characters, texts", sum(act.is_text and act.fact == "elsewhere" for act in self.acts), 0),
            ("acts on anything but the target", sum(act.fact == "elsewhere" for act in self.acts), 0),
            ("median click with verdict, s", clicks[len(clicks) // 2] if clicks else 0.0, 0.4),
        ]

    def table(self) -> str:
        """Counts by application, then the figures, then each wrong act."""
        lines = [f"{'application':<18}{'kind':<9}{'fact':<11}{'said':<18}{'acts':>5}"]
        counted = Counter((act.app, act.kind, act.fact, act.said) for act in self.acts)
        lines += [
            f"{app:<18}{kind:<9}{fact:<11}{said:<18}{number:>5}"
            for (app, kind, fact, said), number in sorted(counted.items())
        ]
        load = f", load {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores"
        lines.append(f"{len(self.acts)} acts on {len({act.app for act in self.acts})} applications{load}")
        lines += [
            f"{'ok  ' if figure <= bar else 'MISS'} {name}: {figure:.3g} (at most {bar:g})"
            for name, figure, bar in self.rows()
        ]
        lines += [
            f"{'wrong or missed' if act.is_wrong or act.is_missed else 'shows, unverifiable'}: "
            f"{act.app} {act.what} ({act.kind}): {act.fact}, said {act.said} {act.note[:90]}"
            for act in self.acts
            if act.is_wrong or act.is_missed or act.is_unseen
        ]
        return "\n".join(lines)


def keep(file: Path, acts: list[Act]) -> None:
    """Write the acts, one a line."""
    file.write_text("".join(json.dumps(asdict(act)) + "\n" for act in acts))


def kept(file: Path) -> list[Act]:
    """The acts that `keep` wrote."""
    return [Act(**json.loads(line)) for line in file.read_text().splitlines()]


def _percent(which: list[bool]) -> float:
    return 100 * sum(which) / len(which) if which else 0.0


async def settles(now: Callable[[], str | None], before: str | None, wanted: str | None, seconds: float = 10.0) -> Fact:
    """Judge by a record that must become `wanted`; without one it must stay as it was, for a short while."""
    deadline = time.monotonic() + (0.3 if wanted is None else seconds)
    while time.monotonic() < deadline:
        held = now()
        if wanted is not None and held == wanted:
            return "happened"
        if wanted is None and held != before:
            return "elsewhere"
        await anyio.sleep(0.03)
    return "nothing" if now() == before else "elsewhere"

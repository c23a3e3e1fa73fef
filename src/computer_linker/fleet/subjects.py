"""The subjects a fleet speaks on, each ending in the seat of the one machine that may use it."""

import re

PREFIX = "cl.v1"
ASK = f"{PREFIX}.ask"
"""A hub asks every machine to say that it is there."""
EVERY_PRESENCE = f"{PREFIX}.here.*"
_SEAT = re.compile(r"[a-z0-9]{8,64}\Z")


def is_seat(text: object) -> bool:
    """True for what can stand in a subject as one machine's part of it."""
    return isinstance(text, str) and _SEAT.match(text) is not None


def seat_of(fingerprint: str) -> str:
    """The seat of a machine or hub that was not given another one."""
    return fingerprint[:32]


def presence(seat: str) -> str:
    """Where a machine says that it is there."""
    return f"{PREFIX}.here.{seat}"


def calls(seat: str) -> str:
    """Where a machine is called."""
    return f"{PREFIX}.call.{seat}"


def audit(hub: str, seat: str) -> str:
    """Where a machine's history goes: to each hub its own, for each may see something else."""
    return f"{PREFIX}.audit.{hub}.{seat}"


def every_audit(hub: str) -> str:
    """All that machines send to one hub's history."""
    return f"{PREFIX}.audit.{hub}.*"


def stream(hub: str) -> str:
    """The store of what machines send to one hub, on the server. No other hub's absence fills it."""
    return f"CL_AUDIT_{hub}"


def reply(hub: str, seat: str, call_id: str) -> str:
    """Where the answer to one call goes."""
    return f"{PREFIX}.reply.{hub}.{seat}.{call_id}"


def every_reply(hub: str) -> str:
    """All answers to one hub."""
    return f"{PREFIX}.reply.{hub}.>"


def flow(to: str, by: str, handle: str) -> str:
    """Where the bytes beside one call go, and what is said about them."""
    return f"{PREFIX}.flow.{to}.{by}.{handle}"


def every_flow(to: str) -> str:
    """All bytes beside calls that are for one machine or hub."""
    return f"{PREFIX}.flow.{to}.*.*"


def inbox(seat: str) -> str:
    """What the client library's own answers begin with, so that the server can keep machines apart there too."""
    return f"_INBOX.{seat}"


def machine_permissions(seat: str) -> dict[str, list[str]]:
    """What the server lets a machine publish and hear: its own subjects alone."""
    return {
        "publish": [presence(seat), audit("*", seat), f"{PREFIX}.reply.*.{seat}.>", flow("*", seat, "*")],
        "subscribe": [calls(seat), every_flow(seat), ASK, f"{inbox(seat)}.>"],
    }


def hub_permissions(hub: str) -> dict[str, list[str]]:
    """What the server lets a hub publish and hear."""
    own = stream(hub)
    store = [f"$JS.API.*.*.{own}", f"$JS.API.*.*.{own}.>", f"$JS.API.CONSUMER.*.*.{own}.>", f"$JS.ACK.{own}.>"]
    return {
        "publish": [f"{PREFIX}.call.*", flow("*", hub, "*"), ASK, *store],
        "subscribe": [EVERY_PRESENCE, every_reply(hub), every_flow(hub), f"{inbox(hub)}.>"],
    }

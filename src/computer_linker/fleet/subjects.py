"""The NATS subjects of a fleet and the permissions on them. A `seat` is the token of one machine in its subjects."""

PREFIX = "cl.v1"
ASK = f"{PREFIX}.ask"
"""A hub asks every machine to announce its presence."""
EVERY_PRESENCE = f"{PREFIX}.here.*"


def seat_of(fingerprint: str) -> str:
    """Return the default seat (subject token) of a machine or hub."""
    return fingerprint[:32]


def presence(seat: str) -> str:
    """The subject of a machine's presence messages."""
    return f"{PREFIX}.here.{seat}"


def calls(seat: str) -> str:
    """The subject of calls to a machine."""
    return f"{PREFIX}.call.{seat}"


def audit(hub: str, seat: str) -> str:
    """The subject of a machine's history for one hub; each hub may see a different part."""
    return f"{PREFIX}.audit.{hub}.{seat}"


def every_audit(hub: str) -> str:
    """The subject filter for all history sent to one hub."""
    return f"{PREFIX}.audit.{hub}.*"


def stream(hub: str) -> str:
    """The name of a hub's JetStream stream. Each hub has its own, so that an absent hub fills only that one."""
    return f"CL_AUDIT_{hub}"


def reply(hub: str, seat: str, call_id: str) -> str:
    """The subject of the reply to one call."""
    return f"{PREFIX}.reply.{hub}.{seat}.{call_id}"


def every_reply(hub: str) -> str:
    """The subject filter for all replies to one hub."""
    return f"{PREFIX}.reply.{hub}.>"


def flow(to: str, by: str, handle: str) -> str:
    """The subject of one stream's messages."""
    return f"{PREFIX}.flow.{to}.{by}.{handle}"


def every_flow(to: str) -> str:
    """The subject filter for all streams to one machine or hub."""
    return f"{PREFIX}.flow.{to}.*.*"


def inbox(seat: str) -> str:
    """The inbox prefix of the client library, per machine, so that permissions separate machines there too."""
    return f"_INBOX.{seat}"


def machine_permissions(seat: str) -> dict[str, list[str]]:
    """The permissions of a machine on the server: its own subjects only."""
    return {
        "publish": [presence(seat), audit("*", seat), f"{PREFIX}.reply.*.{seat}.>", flow("*", seat, "*")],
        "subscribe": [calls(seat), every_flow(seat), ASK, f"{inbox(seat)}.>"],
    }


def hub_permissions(hub: str) -> dict[str, list[str]]:
    """The permissions of a hub on the server."""
    own = stream(hub)
    store = [f"$JS.API.*.*.{own}", f"$JS.API.*.*.{own}.>", f"$JS.API.CONSUMER.*.*.{own}.>", f"$JS.ACK.{own}.>"]
    return {
        "publish": [f"{PREFIX}.call.*", flow("*", hub, "*"), ASK, *store],
        "subscribe": [EVERY_PRESENCE, every_reply(hub), every_flow(hub), f"{inbox(hub)}.>"],
    }

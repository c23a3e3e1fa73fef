"""What an answer that should not come means, and what would help: each kind of obstacle has its own words."""

from computer_linker.service.connector.browser import Answer, HopFailed

_BEHIND = (
    "the proxy or tunnel answers but does not reach the service: see that it runs (computer-linker status), and at the port "
    "the proxy leads to"
)
_MEANINGS = {
    401: "the proxy must pass the Authorization header on",
    403: "an access rule in between refuses (a firewall, or a login page of the tunnel): it must let {path} through",
    404: "the proxy must pass {path} on to the service",
    405: "the proxy must pass {path} on to the service, with every method",
    408: "the request's body arrived too slowly: look at the proxy or tunnel in between",
    413: "the proxy must let larger request bodies through",
    421: "the Host that arrives is not the public address: pass Host on as it came, or set publicBaseUrl to this address",
    429: "too many requests or registered clients; wait a minute, then try again",
    500: "what stands there failed: see the log of the proxy, and computer-linker doctor",
    502: _BEHIND,
    503: _BEHIND,
    504: "the service behind the proxy does not answer in time: see computer-linker status, or start it anew",
}
_FROM_A_CDN = range(520, 540)
"""What Cloudflare's edge answers with when the tunnel or the origin is gone."""


def unexpected(answer: Answer, path: str, what: str | None = None, otherwise: str | None = None) -> HopFailed:
    """The failure of a hop that answered with another status than it should; `otherwise` is for one that has no meaning."""
    seen = f"{what or path} answers {answer.status}"
    if answer.status in range(300, 400):
        return HopFailed(f"{seen}, to {answer.headers.get('location')}", "give clients the address it leads to")
    if answer.status in _FROM_A_CDN:
        return HopFailed(seen, _BEHIND)
    meaning = _MEANINGS.get(answer.status, otherwise or "something in between answers in our place")
    return HopFailed(seen, meaning.format(path=path))

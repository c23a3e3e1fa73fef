"""The consent page's two steps: the owner authenticates, then chooses what a client gets and where."""

import hashlib
import hmac
import secrets
from base64 import b64encode
from urllib.parse import urlsplit

from computer_linker.auth.oauth.page import STYLE, choice_page, error_page, owner_page
from computer_linker.auth.oauth.provider import PENDING_S, LinkerProvider, Pending
from computer_linker.auth.oauth.redirects import with_parameters
from computer_linker.auth.oauth.scopes import GROUPS, grants_for
from computer_linker.auth.owner_token import digest_of, kept_digest, matches
from computer_linker.dispatch.dispatcher import Dispatcher
from computer_linker.model.principal import NO_SESSION, Principal
from computer_linker.policy.grants import places_of
from computer_linker.services import Services
from computer_linker.transports.http.body import Receive, Scope, Send, bounded_body, check_form_headers, every_value
from computer_linker.transports.http.guards import Headers, Refused
from computer_linker.transports.refusals import Guesses, RefusalNotes

PATH = "/oauth/consent"
_COOKIE = "computer-linker-consent"
_MAX_WRONG_TOKENS = 5
_STYLE_HASH = b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
_LATE = "This request is no longer open. Start again from the client."


class Consent:
    """Shows the pages, and processes the owner's answer to the pending request."""

    def __init__(
        self, services: Services, provider: LinkerProvider, dispatcher: Dispatcher, refusals: RefusalNotes
    ) -> None:
        self._services = services
        self._provider = provider
        self._dispatcher = dispatcher
        self._refusals = refusals
        self._guesses = Guesses()

    async def begin(self, send: Send, pending: Pending) -> None:
        """Show the page to the browser that sent the request, and bind the request to that browser.

        It has no URL of its own: such a URL could be sent to another person, or stay in a browser's history.
        """
        self._provider.ask(pending)
        await self._show(send, pending)

    async def serve(self, scope: Scope, receive: Receive, send: Send, headers: Headers, base: str) -> None:
        """Process the form of the page."""
        check_form_headers(headers)
        values = every_value((await bounded_body(receive)).decode("utf-8", "replace"))
        single = [name for name, _ in values if name not in ("group", "scope")]
        if len(set(single)) != len(single):
            raise Refused(400, "A field of the form is given twice.")
        form = dict(values)
        peer: str = (scope.get("client") or ("",))[0]
        pending = self._provider.waiting(form.get("request", ""))
        if pending is None or pending.issuer != base or not _is_same_browser(headers, pending):
            await page(send, 400, error_page(_LATE))
        elif not hmac.compare_digest(form.get("csrf", "").encode(), pending.csrf.encode()):
            await page(send, 403, error_page("The form is not the one that was shown."))
        elif form.get("answer") != "allow":
            del self._provider.pending[pending.handle]
            url = with_parameters(pending.redirect_uri, error="access_denied", state=pending.state, iss=base)
            await redirect(send, url)
        elif await self._is_the_owner(send, pending, form.get("owner_token", ""), peer):
            await self._allow(send, pending, values, peer)

    async def _is_the_owner(self, send: Send, pending: Pending, token: str, peer: str) -> bool:
        """Whether the token is right, or was accepted earlier on this page. Else the first page shows the error, a few times."""
        kept = self._services.config.owner_token
        if kept is not None and not token and pending.owner_digest == kept_digest(kept):
            return True
        if kept is not None and matches(kept, token):
            pending.owner_digest = digest_of(token)
            # The party that began the request may know its secrets, and may have put its cookie into the owner's browser: from
            # here on only the browser that sent the token may continue.
            pending.csrf = secrets.token_urlsafe(24)
            return True
        pending.owner_digest = None
        pending.wrong_tokens += 1
        await self._refusals.note(peer, "wrong_owner_token")
        wait_s = self._guesses.wrong(peer)
        if wait_s is not None:
            later = [(b"retry-after", str(wait_s).encode())]
            await page(send, 429, error_page("Too many wrong tokens. Wait before the next."), more=later)
        elif pending.wrong_tokens >= _MAX_WRONG_TOKENS:
            del self._provider.pending[pending.handle]
            await page(send, 403, error_page("Too many wrong tokens. Start again from the client."))
        else:
            await self._show(send, pending, "That is not the owner token.", status=403)
        return False

    async def _allow(self, send: Send, pending: Pending, values: list[tuple[str, str]], peer: str) -> None:
        """Grant what was chosen; without a choice, show the choice page."""
        chosen_groups = {value for name, value in values if name == "group"}
        groups = [name for name in GROUPS if name in chosen_groups]
        chosen = [value for name, value in values if name == "scope"]
        scopes = [scope for scope in self._services.config.scopes if scope.id in chosen]
        grants = grants_for(groups, scopes)
        if not grants:
            # The first page's form has a token and no choice; any other form without a choice is incomplete.
            is_first = {name for name, value in values if value}.isdisjoint(
                {"group", "scope"}
            ) and "owner_token" in dict(values)
            error = None if is_first else "Choose at least one thing it may do, and where."
            await self._show(send, pending, error, status=400 if error else 200)
            return
        code, family = self._provider.consent(pending, groups, grants, places_of(scopes))
        who = Principal(family.principal, "oauth", NO_SESSION, f"http-{peer}", client=pending.client.name)
        await self._dispatcher.note("oauth.consent", who, {"groups": " ".join(groups), "grants": len(grants)})
        url = with_parameters(pending.redirect_uri, code=code, state=pending.state, iss=pending.issuer)
        await redirect(send, url)

    async def _show(self, send: Send, pending: Pending, error: str | None = None, status: int = 200) -> None:
        config = self._services.config
        if pending.owner_digest is None:
            html = owner_page(pending, error)
        else:
            html = choice_page(pending, config.scopes, config.machine_name, error)
        cookie = (b"set-cookie", _cookie(pending).encode())
        await page(send, status, html, _form_target(pending.redirect_uri), [cookie])


def _form_target(redirect_uri: str) -> str:
    """The form-action source of the redirect for a content security policy, which has no syntax for an IPv6 address."""
    target = urlsplit(redirect_uri)
    return f"{target.scheme}:" if "[" in target.netloc else f"{target.scheme}://{target.netloc}"


def _cookie(pending: Pending) -> str:
    """The cookie that binds the consent to the browser that requested it."""
    name, is_secure = _cookie_name(pending), pending.issuer.startswith("https://")
    value = hashlib.sha256(pending.csrf.encode()).hexdigest()
    return f"{name}={value}; Path=/; HttpOnly; SameSite=Lax; Max-Age={PENDING_S}{'; Secure' if is_secure else ''}"


def _cookie_name(pending: Pending) -> str:
    """The cookie's name: over https a `__Host-` one that no neighbouring host can set; then no other name counts."""
    return f"__Host-{_COOKIE}" if pending.issuer.startswith("https://") else _COOKIE


def _is_same_browser(headers: Headers, pending: Pending) -> bool:
    wanted = hashlib.sha256(pending.csrf.encode()).hexdigest()
    for part in headers.get(b"cookie", b"").decode("latin-1").split(";"):
        name, _, value = part.strip().partition("=")
        if name == _cookie_name(pending) and hmac.compare_digest(value.encode(), wanted.encode()):
            return True
    return False


async def redirect(send: Send, url: str) -> None:
    """Redirect the browser."""
    given = [(b"location", url.encode()), (b"content-length", b"0"), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": 302, "headers": given})
    await send({"type": "http.response.body", "body": b""})


async def page(
    send: Send, status: int, html: str, form_target: str = "", more: list[tuple[bytes, bytes]] | None = None
) -> None:
    """Send a page that runs no script, loads nothing and cannot be framed."""
    body = html.encode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; form-action 'self' {form_target}; "
        "frame-ancestors 'none'; base-uri 'none'"
    )
    headers = [
        (b"content-type", b"text/html; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        (b"content-security-policy", policy.encode()),
        (b"x-frame-options", b"DENY"),
        # Not `no-referrer`: a browser then sends the form with the origin `null`, which is refused.
        (b"referrer-policy", b"same-origin"),
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers + (more or [])})
    await send({"type": "http.response.body", "body": body})

"""The consent page: who asks, where the code goes, and what the owner gives. Plain HTML, no script, no outside resource."""

from html import escape
from urllib.parse import urlsplit

from computer_linker.auth.oauth.provider import Pending
from computer_linker.auth.oauth.redirects import is_loopback
from computer_linker.auth.oauth.scopes import EXPLAINED
from computer_linker.model.scope import Scope
from computer_linker.policy.preview import escaped

STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:2rem auto;padding:0 1rem;color:#1a1a1a;background:#fff}
h1{font-size:1.4rem}fieldset{border:1px solid #bbb;border-radius:8px;margin:1rem 0;padding:.6rem 1rem}
label{display:block;margin:.3rem 0}code{overflow-wrap:anywhere}input[type=password]{width:100%;font:inherit;padding:.5rem;
box-sizing:border-box}button{font:inherit;padding:.6rem 1.2rem;margin-right:.6rem;border-radius:8px;border:1px solid #444}
.yes{background:#0b57d0;color:#fff;border-color:#0b57d0}.warn{background:#fff3cd;border-radius:8px;padding:.6rem 1rem}
.error{background:#fde7e9;border-radius:8px;padding:.6rem 1rem}
@media(prefers-color-scheme:dark){body{color:#eee;background:#1b1b1b}.warn{background:#4a3c00}.error{background:#5c1a1f}}
"""


def consent_page(pending: Pending, scopes: list[Scope], machine: str, error: str | None = None) -> str:
    """The page for one request."""
    host = urlsplit(pending.redirect_uri).netloc
    groups = "".join(
        _box("group", name, f"{name}: {EXPLAINED[name]}", checked=True) for name in pending.scopes if name in EXPLAINED
    )
    folders = "".join(
        _box("scope", scope.id, f"{scope.id} ({scope.name or scope.type})", checked=False) for scope in scopes
    )
    warning = (
        '<p class="warn">The code goes to a program on the machine of whoever opened this page. '
        "Go on only if you started this yourself.</p>"
        if is_loopback(pending.redirect_uri)
        else ""
    )
    told = f'<p class="error" role="alert">{_text(error)}</p>' if error else ""
    return _document(
        f"""<h1>Let {_text(pending.client.name)} use {_text(machine)}?</h1>{told}
<p>It calls itself <strong>{_text(pending.client.name)}</strong>. Computer Linker cannot know whether that is true.
The answer goes to <code>{_text(host)}</code>.</p>{warning}
<form method="post" action="/oauth/consent">
<input type="hidden" name="request" value="{_text(pending.handle)}">
<input type="hidden" name="csrf" value="{_text(pending.csrf)}">
<fieldset><legend>What it may do</legend>{groups}</fieldset>
<fieldset><legend>Where</legend>{folders or "<p>No scopes are configured yet.</p>"}</fieldset>
<label>Owner token<input type="password" name="owner_token" autocomplete="off" required></label>
<p><button class="yes" name="answer" value="allow">Allow</button>
<button name="answer" value="deny" formnovalidate>Do not allow</button></p></form>"""
    )


def error_page(message: str) -> str:
    """A page for a request that cannot go on; nothing is redirected."""
    return _document(f'<h1>This request cannot go on</h1><p class="error">{_text(message)}</p>')


def _box(name: str, value: str, label: str, *, checked: bool) -> str:
    mark = " checked" if checked else ""
    return f'<label><input type="checkbox" name="{name}" value="{_text(value)}"{mark}> {_text(label)}</label>'


def _text(value: str) -> str:
    return escape(escaped(value), quote=True)


def _document(body: str) -> str:
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>Computer Linker</title><style>{STYLE}</style></head><body>{body}</body></html>"
    )

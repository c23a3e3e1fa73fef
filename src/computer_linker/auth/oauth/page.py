"""The HTML of the consent page: the client and redirect first, and the grants once the owner is authenticated.

Plain HTML, no script, no outside resource. Anyone can open the first page, so nothing of the computer is on it.
"""

from html import escape
from urllib.parse import urlsplit

from computer_linker.auth.oauth.provider import Pending
from computer_linker.auth.oauth.redirects import is_loopback
from computer_linker.auth.oauth.scopes import EXPLAINED
from computer_linker.model.scope import Scope
from computer_linker.policy.visible_text import client_label, escaped

STYLE = """
:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:1.5rem auto;padding:0 1rem;color:#1a1a1a;background:#fff}
h1{font-size:1.4rem;overflow-wrap:anywhere}p,li{overflow-wrap:anywhere}
fieldset{border:1px solid #bbb;border-radius:8px;margin:1rem 0;padding:.3rem 1rem;min-width:0}
label{display:flex;align-items:center;gap:.7rem;min-height:44px;overflow-wrap:anywhere}label span{min-width:0}
label.token{display:block}input[type=checkbox]{flex:none;width:20px;height:20px;margin:0}
small{display:block;color:#5b5b63}code{overflow-wrap:anywhere}
input[type=password]{width:100%;font:inherit;min-height:44px;padding:.5rem;box-sizing:border-box;border:1px solid #888;
border-radius:8px}
button{font:inherit;min-height:44px;padding:.5rem 1.2rem;margin:0 .6rem .6rem 0;border-radius:8px;border:1px solid #888;
background:transparent;color:inherit}
.yes{background:#0b57d0;color:#fff;border-color:#0b57d0}.warn{background:#fff3cd;border-radius:8px;padding:.6rem 1rem}
.error{background:#fde7e9;border-radius:8px;padding:.6rem 1rem}
@media(prefers-color-scheme:dark){body{color:#eee;background:#1b1b1b}small{color:#a9a9b2}.warn{background:#4a3c00}
.error{background:#5c1a1f}}
"""


def owner_page(pending: Pending, error: str | None = None) -> str:
    """Return the first page: which client requests what, and the owner's sign-in."""
    asked = "".join(f"<li>{_text(EXPLAINED[name])}</li>" for name in pending.scopes if name in EXPLAINED)
    return _document(
        f"""<h1>Let {_text(client_label(pending.client.name))} use this computer?</h1>{_error_text(error)}{_who(pending)}
<p>It asks to</p><ul>{asked}</ul><p>You choose on the next page what it gets, and where.</p>
<form method="post" action="/oauth/consent">{_hidden(pending)}
<label class="token">Owner token<input type="password" name="owner_token" autocomplete="off" required autofocus></label>
<p><small>At the computer, <code>computer-linker token show</code> prints it.</small></p>
{_buttons("Go on")}</form>"""
    )


def choice_page(pending: Pending, scopes: list[Scope], machine: str, error: str | None = None) -> str:
    """The second page, for the owner alone: what the client may do, and where.

    The owner may grant more than was requested: many clients request little at first and cannot ask again.
    """
    groups = "".join(
        _box(
            "group",
            name,
            name if name in pending.scopes else f"{name} (not asked for)",
            explanation,
            is_checked=name in pending.scopes,
        )
        for name, explanation in EXPLAINED.items()
    )
    folders = "".join(
        _box("scope", scope.id, scope.name or scope.id, " ".join(scope.roots) or scope.type, is_checked=False)
        for scope in scopes
    )
    return _document(
        f"""<h1>Let {_text(client_label(pending.client.name))} use {_text(machine)}?</h1>{_error_text(error)}{_who(pending)}
<form method="post" action="/oauth/consent">{_hidden(pending)}
<fieldset><legend>What it may do</legend>{groups}</fieldset>
<fieldset><legend>Where</legend>{folders or "<p>No scopes are configured yet.</p>"}</fieldset>
{_buttons("Allow")}</form>"""
    )


def error_page(message: str) -> str:
    """A page for a request that cannot go on; nothing is redirected."""
    return _document(f'<h1>This request cannot go on</h1><p class="error" role="alert">{_text(message)}</p>')


def _who(pending: Pending) -> str:
    warning = (
        '<p class="warn">The code goes to a program on the machine where this page was opened. '
        "Go on only if you started this yourself.</p>"
        if is_loopback(pending.redirect_uri)
        else ""
    )
    is_by_document = pending.client.id.startswith("https://")
    source = (
        f" That name comes from <code>{_text(urlsplit(pending.client.id).netloc)}</code>." if is_by_document else ""
    )
    return (
        f"<p>It calls itself <strong>“{_text(pending.client.name)}”</strong>. Computer Linker cannot know whether that is "
        f"true.{source} The answer goes to <code>{_text(urlsplit(pending.redirect_uri).netloc)}</code>.</p>{warning}"
    )


def _error_text(error: str | None) -> str:
    return f'<p class="error" role="alert">{_text(error)}</p>' if error else ""


def _hidden(pending: Pending) -> str:
    return (
        f'<input type="hidden" name="request" value="{_text(pending.handle)}">'
        f'<input type="hidden" name="csrf" value="{_text(pending.csrf)}">'
    )


def _buttons(yes: str) -> str:
    return (
        f'<p><button class="yes" name="answer" value="allow">{yes}</button>'
        '<button name="answer" value="deny" formnovalidate>Do not allow</button></p>'
    )


def _box(name: str, value: str, label: str, more: str, *, is_checked: bool) -> str:
    mark = " checked" if is_checked else ""
    return (
        f'<label><input type="checkbox" name="{name}" value="{_text(value)}"{mark}>'
        f"<span>{_text(label)}<small>{_text(more)}</small></span></label>"
    )


def _text(value: str) -> str:
    return escape(escaped(value), quote=True)


def _document(body: str) -> str:
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>Computer Linker</title><style>{STYLE}</style></head><body><main>{body}</main></body></html>"
    )

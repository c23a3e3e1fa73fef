"""HTML of the approval page: each request exactly as it is, escaped, with large buttons; made for a phone."""

from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from html import escape

from computer_linker.approvals.choices import Choice
from computer_linker.approvals.request import ApprovalRequest
from computer_linker.approvals.standing import MINUTES
from computer_linker.policy.visible_text import beginning, escaped, mark_of

_MAX_SHOWN = 300_000
_NAMES = {"same": "this exact request again", "shape": "all of these"}
_STYLE = """
:root{color-scheme:light dark}
body{font:17px/1.5 system-ui,sans-serif;max-width:40rem;margin:0 auto;padding:1rem;color:#1a1a1a;background:#f6f6f7}
h1{font-size:1.25rem;margin:.2rem 0 1rem}h2{font-size:1.15rem;margin:0;overflow-wrap:anywhere}
section{background:#fff;border:1px solid #d5d5da;border-radius:14px;padding:1rem;margin:0 0 1rem}
p{margin:.3rem 0;overflow-wrap:anywhere}a{color:inherit}.quiet{color:#5b5b63}
pre{white-space:pre-wrap;overflow-wrap:anywhere;font:14px/1.45 ui-monospace,monospace;background:#f0f0f3;border-radius:10px;
padding:.7rem;margin:.7rem 0}
button{font:inherit;font-weight:600;width:100%;min-height:3rem;margin:.3rem 0;border-radius:12px;border:1px solid #8a8a93;
background:transparent;color:inherit}
img{max-width:100%;height:auto;border-radius:10px;border:1px solid #d5d5da;margin:.5rem 0 0}
section[inert]{visibility:hidden}
button:disabled{opacity:.55}
.add{color:#0a6b2d}.del{color:#9c1c14}.head{display:inline-block;font-weight:700;margin-top:.7rem}
.yes{background:#0b57d0;border-color:#0b57d0;color:#fff}.no{background:#b3261e;border-color:#b3261e;color:#fff}
@media(prefers-color-scheme:dark){body{color:#eee;background:#141416}section{background:#202024;border-color:#3a3a40}
pre{background:#141416}.quiet{color:#a9a9b2}.add{color:#7fd79b}.del{color:#ff9c94}}
"""


_SCRIPT = """
const sections = () => [...document.querySelectorAll("section[data-id]:not([inert])")];
const buttons = [...document.querySelectorAll("button")];
for (const one of buttons) one.disabled = true;
setTimeout(() => { for (const one of buttons) one.disabled = false; }, 1000);
const known = new Set(sections().map(one => one.dataset.id));
async function look() {
  let waiting;
  try {
    const answer = await fetch("/approve/state", {cache: "no-store"});
    if (answer.status === 403) { location.reload(); return; }
    waiting = await answer.json();
  } catch { return; }
  for (const one of sections()) {
    if (one.dataset.id in waiting) one.querySelector(".left").textContent = waiting[one.dataset.id];
    else one.inert = true;
  }
  const fresh = Object.keys(waiting).filter(id => !known.has(id)).length;
  const isEmpty = sections().length === 0;
  if (isEmpty && (fresh || known.size)) { location.reload(); return; }
  document.getElementById("news").textContent = fresh ? `${fresh} more wait. ` : "";
}
setInterval(look, 1000);
"""
"""Counts down and hides what no longer waits, in its place. What is new is announced, not put in: nothing may move under a
thumb. A page that was just loaded takes no touch for a second: it was meant for what was there before."""
SCRIPT_HASH = f"sha256-{b64encode(sha256(_SCRIPT.encode()).digest()).decode()}"


def list_page(waiting: Sequence[tuple[ApprovalRequest, Sequence[Choice]]], csrf: str, machine: str) -> str:
    """The requests that wait for an answer. A script keeps the page current; without one, a link looks again."""
    inner = "".join(_request(asked, choices, csrf) for asked, choices in waiting)
    hidden = " hidden" if waiting else ""
    nothing = f'<section id="nothing"{hidden}><p>Nothing waits for your answer.</p></section>'
    again = '<p><span id="news" role="status"></span><a href="/approve">Look again</a></p>'
    return _document(f"<h1>{_text(machine)} asks you</h1>{again}{inner}{nothing}<script>{_SCRIPT}</script>")


def closed_page() -> str:
    """The page for a browser without a valid link."""
    return _document(
        "<h1>This link no longer opens</h1><section><p>A link opens this page once. Make a new one at the computer:</p>"
        "<pre>computer-linker approvals phone</pre></section>"
    )


def _request(asked: ApprovalRequest, choices: Sequence[Choice], csrf: str) -> str:
    hidden = f'<input type="hidden" name="csrf" value="{_text(csrf)}"><input type="hidden" name="id" value="{_text(asked.id)}">'
    return f"""<section data-id="{_text(asked.id)}"><h2>{_text(asked.op)}</h2>
<p>in <strong>{_text(asked.scope)}</strong>, asked by {_text(asked.asker)}</p>
<p class="quiet"><span class="left">{asked.seconds_left}</span> seconds left; silence means no.</p>
{_about(asked)}<p class="quiet">The exact request:</p><pre>{_lines(_fitting(asked))}</pre>
<form method="post" action="/approve">{hidden}
{_buttons(asked, choices)}</form></section>"""


def is_shown_whole(asked: ApprovalRequest) -> bool:
    """True when the page shows every character of the request, so that it can be allowed there."""
    return len(asked.text) <= _MAX_SHOWN


def _fitting(asked: ApprovalRequest) -> str:
    return asked.preview if is_shown_whole(asked) else beginning(asked.preview, _MAX_SHOWN)


def _buttons(asked: ApprovalRequest, choices: Sequence[Choice]) -> str:
    no = '<button class="no" name="answer" value="deny">Do not allow</button>'
    if not is_shown_whole(asked):
        return f"<p>It is too long for this page. Allow it at the computer: computer-linker approvals</p>{no}"
    more = "".join(
        f'<p class="quiet">{_text(choice.text)}</p>'
        f'<button name="answer" value="{choice.answer}">Allow {_NAMES[choice.answer]} for {MINUTES} minutes</button>'
        for choice in choices
    )
    return f'<button class="yes" name="answer" value="allow">Allow once</button>\n{no}\n{more}'


def _about(asked: ApprovalRequest) -> str:
    """The effect of the request: text, and a screenshot of the target inside the page itself."""
    if asked.about is None:
        return ""
    image = ""
    if asked.picture is not None:
        image = f'<img alt="The place it is for" src="data:image/png;base64,{b64encode(asked.picture).decode()}">'
    return f"{image}<pre>{'<br>'.join(_marked(asked.op, line) for line in asked.about.lines)}</pre>\n"


def _marked(op: str, line: str) -> str:
    kind = {"+": "add", "-": "del", "=": "head"}.get(mark_of(op, line))
    return _text(line) if kind is None else f'<span class="{kind}">{_text(line)}</span>'


def _lines(preview: str) -> str:
    text, _, digest = preview.rpartition("\n")
    return f"{_text(text)}\n\n{_text(digest)}"


def _text(value: str) -> str:
    return escape(escaped(value), quote=True)


def _document(body: str) -> str:
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>Approvals</title><style>{_STYLE}</style></head><body><main>{body}</main></body></html>"
    )

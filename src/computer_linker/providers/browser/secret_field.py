"""Scripts for a page that gets a secret: put it into the focused password field, and find out whether the page shows it.

Each runs as one step of the page, so no navigation can come between the look at the origin and the act. Before that look
nothing is called that a page could have replaced: `location` cannot be, and a strict function shows its source to no one.
"""

import json

_ACTIVE = """
  let a = document.activeElement;
  for (;;) {
    const inner = a && ((a.shadowRoot && a.shadowRoot.activeElement) || (a.contentDocument && a.contentDocument.activeElement));
    if (!inner) break;
    a = inner;
  }
"""
_MARKS = "window[Symbol.for('computer-linker.secret')]"
"""The fields that hold a secret, or what is left of one."""

SHOWN = (
    """(() => {
  const marks = """
    + _MARKS
    + """, shown = [document.title];
  let state = 'hidden';
  const walk = root => {
    for (const e of root.querySelectorAll('*')) {
      if (e.shadowRoot) walk(e.shadowRoot);
      if (e.tagName === 'IFRAME' || e.tagName === 'FRAME') { if (e.contentDocument) walk(e.contentDocument); }
      else if (e.tagName === 'TEXTAREA' || e.tagName === 'SELECT' || (e.tagName === 'INPUT' && e.type !== 'password')) {
        shown.push(e.value);
        if (marks && marks.has(e) && e.value) state = 'shown';
      }
    }
    shown.push(root.body ? root.body.innerText : root.textContent);
  };
  walk(document);
  return state + ' ' + JSON.stringify(shown);
})()"""
)
"""`hidden`, or `shown` where a field with a secret is no password field any more, and the text that a picture could show."""

IS_IN_FIELD = "(() => {" + _ACTIVE + f"  const marks = {_MARKS};\n  return !!(marks && marks.has(a) && a.value);\n}})()"
"""Whether the focused field holds a secret."""


def put_secret(origin: str, value: str) -> str:
    """Put the value into the focused password field of a page of this origin: `put`, `cut`, `elsewhere` or `no field`.

    One that does not take the whole value is emptied: a part of a secret is found by no mask.
    """
    return (
        f"(() => {{ 'use strict';\n  if (location.origin !== {json.dumps(origin)}) return 'elsewhere';\n"
        f"  const value = {json.dumps(value)};"
        + _ACTIVE
        + f"""  if (!a || a.tagName !== 'INPUT' || a.type !== 'password' || a.readOnly || a.disabled) return 'no field';
  ({_MARKS} = {_MARKS} || new WeakSet()).add(a);
  a.select();
  a.ownerDocument.execCommand('insertText', false, value);
  if (a.value !== value) a.value = '';
  return a.value === value ? 'put' : 'cut';
}})()"""
    )

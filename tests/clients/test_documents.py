"""Any settings file: our entry goes in and comes out, and what else it says stays."""

import copy
import json
import tomllib
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from computer_linker.service.clients.jsonc import CannotEdit, Jsonc, Toml

PATH = ("mcpServers", "computer-linker")
ENTRY = {"command": '/opt/it\'s "here"/é', "args": ["stdio"], "env": {"A": "\x7f"}}
NAMES = st.sampled_from(["mcpServers", "other", "computer-linker", "a.b", 'q"uote', "é", "//", "/*"]) | st.text(
    max_size=6
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=15,
)


def without_entry(value: dict[str, Any]) -> dict[str, Any]:
    """What is left once the entry, and a container that held nothing else, are gone."""
    left = copy.deepcopy(value)
    servers = left.get("mcpServers")
    if isinstance(servers, dict) and "computer-linker" in servers:
        del servers["computer-linker"]
        if not servers:
            del left["mcpServers"]
    return left


@settings(max_examples=300, deadline=None)
@given(document=st.dictionaries(NAMES, JSON, max_size=4), indent=st.sampled_from([None, 2, 4, "\t"]))
def test_json_keeps_everything_else(document: dict[str, Any], indent: Any) -> None:
    text = json.dumps(document, indent=indent, ensure_ascii=False)
    try:
        changed = Jsonc().put(text, PATH, ENTRY)
    except CannotEdit:
        assert not isinstance(document.get("mcpServers", {}), dict)
        return
    expected = copy.deepcopy(document)
    expected.setdefault("mcpServers", {})["computer-linker"] = ENTRY
    assert json.loads(changed) == expected
    back = Jsonc().drop(changed, PATH)
    assert json.loads(back) == without_entry(expected)
    servers = document.get("mcpServers")
    if document and servers != {} and not (isinstance(servers, dict) and "computer-linker" in servers):
        assert back == text


@settings(max_examples=300, deadline=None)
@given(text=st.text(alphabet='{}[]":,/*\n\\ a1-.', max_size=40))
def test_text_that_is_no_json_is_refused_and_never_misread(text: str) -> None:
    try:
        changed = Jsonc().put(text, PATH, ENTRY)
    except CannotEdit:
        return
    assert Jsonc().get(changed, PATH) == ENTRY


TOML_PARTS = st.lists(
    st.sampled_from(
        [
            'model = "x"\n', "[mcp_servers]\n", '[mcp_servers.other]\ncommand = "y"\n', '[mcp_servers."computer-linker"]\nold = 1\n',
            "[mcp_servers.computer-linker.env]\nA = 'b'\n", "[[list]]\na = 1\n", "# a comment\n", "\n",
            'text = """\n[mcp_servers.computer-linker]\n"""\n', "mcp_servers = {}\n", "[ mcp_servers . third ] # spaced\n",
        ]
    ),
    max_size=6,
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(parts=TOML_PARTS)
def test_toml_keeps_everything_else(parts: list[str]) -> None:
    text = "".join(parts)
    path = ("mcp_servers", "computer-linker")
    try:
        changed = Toml().put(text, path, ENTRY)
    except CannotEdit:
        return
    expected = tomllib.loads(text)
    expected.setdefault("mcp_servers", {})["computer-linker"] = ENTRY
    assert tomllib.loads(changed) == expected
    back = tomllib.loads(Toml().drop(changed, path))
    assert "computer-linker" not in back.get("mcp_servers", {})
    for name, value in tomllib.loads(text).items():
        if name != "mcp_servers":
            assert back[name] == value

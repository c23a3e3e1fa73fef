"""The shapes that results of several operations share, as a model reads them: pages, output, lists, diffs, elements, events."""

from typing import Any

from computer_linker.model.ids import short_id
from computer_linker.registry.text import Text, render, rows, table, tree, verbatim


def lines(items: Any) -> str:
    """Show a list of texts one a line."""
    return "\n".join(str(item) for item in items)


def _page_head(data: dict[str, Any]) -> str:
    """`notes.txt, 812 bytes`, and where the content begins and goes on, when it is a part of the file."""
    parts = [f"{data.get('path', '')}, {data['size']} bytes" if "size" in data else str(data.get("path", ""))]
    if data.get("charset"):
        parts.append(data["charset"])
    if data.get("document"):
        return _document_head(parts, data["document"]) + (":" if data.get("content") else "")
    if (start := data.get("startLine") or 1) > 1:
        parts.append(f"from line {start}")
    if data.get("truncated"):
        then = f"startLine {data['nextLine']}" if data.get("nextLine") else f"startByte {data.get('nextByte')}"
        parts.append(f"goes on: {then}")
    return ", ".join(parts) + (":" if data.get("content") else "")


_MAX_NAMED_SHEETS = 20


def _document_head(parts: list[str], facts: dict[str, Any]) -> str:
    """What the document is, which part of it is shown, and the options that read on."""
    parts = [*parts, facts["kind"] + (f' "{facts["title"]}"' if facts.get("title") else "")]
    unit, count = facts.get("unit"), facts.get("count") or 0
    if unit:
        parts.append(f"{count} {unit}{'' if count == 1 else 's'}")
        if facts.get("last", 0) > 0 and count > 1:
            first, last = facts["first"], facts["last"]
            parts.append(f"{unit} {first}" if first == last else f"{unit}s {first} to {last}")
    sheets = facts.get("sheets") or []
    if len(sheets) > 1:
        parts.append("sheets: " + ", ".join(sheets[:_MAX_NAMED_SHEETS]))
    if facts.get("range"):
        of = f" of {facts['used']}" if facts.get("used") not in (None, facts["range"]) else ""
        parts.append(f"cells {facts['range']}{of}")
    parts += [f"{name} {facts[name]}" for name in ("rows", "columns", "members", "member") if facts.get(name)]
    if facts.get("width"):
        parts.append(f"{facts['width']} x {facts['height']} pixels")
    if facts.get("byOcr"):
        parts.append(f"by OCR: {', '.join(map(str, facts['byOcr']))}")
    if facts.get("next"):
        parts.append("goes on: " + ", ".join(f"{name} {value}" for name, value in facts["next"].items()))
    return ", ".join(parts)


def _pages(files: Any) -> str:
    return "\n\n".join(
        f"{item['path']}: {item['error']['message']}" if "error" in item else render(item, PAGE) for item in files
    )


def _output_head(data: dict[str, Any]) -> str:
    ended = f"signal {data['signal']}" if data.get("signal") else f"exit {data['exitCode']}"
    if data.get("timedOut"):
        ended += ", timed out"
    seconds = float(data.get("durationMs") or 0) / 1000
    left_out = ", the middle of the output was left out" if data.get("truncated") else ""
    return f"{ended}, {seconds:.2f} s{left_out}"


def _stream(chunks: Any) -> str:
    return _typed("".join(chunk["text"] for chunk in chunks))


def _typed(text: Any) -> str:
    """What a program on a terminal printed: the terminal ends each line with two characters, of which one is enough."""
    return str(text).replace("\r\n", "\n")


def _entries(entries: Any) -> str:
    return "\n".join(
        f"{entry['name']}/" if entry["type"] == "directory" else f"{entry['name']}  {entry['size']}"
        + (f"  {entry['type']}" if entry["type"] != "file" else "")
        for entry in entries
    )  # fmt: skip


def _matches(matches: Any) -> str:
    """`path:line: text`, with context lines as grep shows them."""
    shown = []
    for match in matches:
        path, line = match["path"], match["line"]
        before, after = match.get("before") or [], match.get("after") or []
        shown += [f"{path}-{line - len(before) + at}- {text}" for at, text in enumerate(before)]
        place = f" {match['part']}" if match.get("part") else f":{line}"
        shown.append(f"{path}{place}: {match['preview']}")
        shown += [f"{path}-{line + 1 + at}- {text}" for at, text in enumerate(after)]
    return "\n".join(shown)


def _changes(entries: Any) -> str:
    """As `git status --short` shows them: a blank is unchanged."""
    return "\n".join(
        f"{_letter(entry['index'])}{_letter(entry['worktree'])} {entry['path']}"
        + (f" (was {entry['renamedFrom']})" if entry.get("renamedFrom") else "")
        for entry in entries
    )


def _letter(letter: str) -> str:
    return " " if letter in ("", ".") else letter


def _stream_head(data: dict[str, Any]) -> str:
    """The status, and what reading on needs; that nothing was dropped, and that a wait ended as asked, is the rule."""
    facts = [str(data["status"])]
    if data.get("exitCode") is not None:
        facts.append(f"exit {data['exitCode']}")
    if data.get("waitsForInput"):
        facts.append("waits for input")
    if data.get("waited") == "time":
        facts.append("what was waited for did not come in time")
    if data.get("dropped"):
        facts.append(f"dropped: {data['dropped']}")
    return ", ".join([*facts, f"cursor: {data.get('nextCursor') or data['cursor']}"])


def _commit_head(data: dict[str, Any]) -> str:
    count = len(data["files"])
    return f"committed {data['hash'][:10]}, {count} file{'' if count == 1 else 's'}"


def _status_head(data: dict[str, Any]) -> str:
    at = data.get("branch") or f"detached at {str(data.get('head'))[:9]}"
    apart = [f"{name} {data[name]}" for name in ("ahead", "behind") if data.get(name)]
    return ", ".join([f"on {at}", *apart, *(["clean"] if data.get("clean") else [])])


def _commits(commits: Any) -> str:
    return "\n".join(f"{one['hash'][:10]} {one['date'][:16]} {one['author']}: {one['subject']}" for one in commits)


def _commit(commit: Any) -> str:
    body = f"\n{commit['body'].rstrip()}" if commit.get("body") else ""
    return f"{commit['hash']} {commit['date'][:16]} {commit['author']}: {commit['subject']}{body}"


_USUAL_STATES = frozenset(
    {"enabled", "showing", "focusable", "selectable", "multiselectable", "multi-line", "editable"}
)
"""States that most controls are in, or that their role implies; `disabled` is shown."""


def _elements(nodes: Any) -> str:
    """One element a line, indented below its parent: reference, role, name, value and the states that tell it apart."""
    depth: dict[str, int] = {}
    shown = []
    for node in nodes:
        level = depth[node["ref"]] = depth.get(str(node.get("parent")), -1) + 1
        name = f' "{node["name"]}"' if node.get("name") else ""
        value = f" = {node['value']}" if node.get("value") else ""
        apart = [state for state in node.get("states", ()) if state not in _USUAL_STATES]
        states = f" [{', '.join(apart)}]" if apart else ""
        shown.append(f"{' ' * level}{node['ref']} {node['role']}{name}{value}{states}")
    return "\n".join(shown)


def _events(events: Any) -> str:
    return "\n".join(
        f"{event['startedAt'][:19]} {event['op']} {event.get('commandPreview') or event.get('target') or ''} "
        + ("ok" if event.get("ok") else str(event.get("errorCode") or event.get("outcome") or "failed"))
        + f" by {event.get('client') or event.get('principal')}"
        + (f" ({short_id(event['operationId'])})" if event.get("effect") else "")
        for event in events
    )


def _artifact(artifact: Any) -> str:
    title = f' "{artifact["title"]}"' if artifact.get("title") else ""
    return f"{artifact['id']} {artifact['kind']}{title}, {artifact['size']} bytes"


def _artifacts(artifacts: Any) -> str:
    return "\n".join(_artifact(artifact) for artifact in artifacts)


PAGE = Text({"content": verbatim}, head=_page_head, quiet=frozenset({"startLine", "document", "charset"}))
PAGES = Text({"files": _pages})
OUTPUT = Text({"stdout": verbatim}, head=_output_head)
STREAM = Text({"chunks": _stream}, head=_stream_head)
SENT = Text({"output": _typed}, head=_stream_head)
STARTED = Text(quiet=frozenset({"commandPreview"}))
COMMITTED = Text(head=_commit_head, quiet=frozenset({"files"}))
ENTRIES = Text({"entries": _entries}, quiet=frozenset({"truncated"}), empty="an empty folder")
TREE = Text({"entries": tree}, empty="an empty folder")
FILES = Text({"files": lines}, quiet=frozenset({"truncated"}), empty="no files")
MATCHES = Text({"matches": _matches}, quiet=frozenset({"truncated"}), empty="no matches")
SYMBOLS = Text({"symbols": rows("{path}:{line}: {kind} {signature}")}, empty="no symbols")
STATUS = Text({"entries": _changes, "diff": verbatim}, head=_status_head, quiet=frozenset({"counts"}))
DIFF = Text({"diff": verbatim}, quiet=frozenset({"files"}), empty="no differences")
COMMITS = Text({"commits": _commits}, empty="no commits")
COMMIT = Text({"commit": _commit, "diff": verbatim}, quiet=frozenset({"files"}))
PATCHED = Text({"files": rows("{action} {path} +{additions} -{deletions}")})
UNDONE = Text({"files": rows("{action} {path}")})
PROCESSES = Text({"processes": table}, empty="no processes")
TEXT = Text({"text": verbatim})
OUTLINE = Text({"outline": verbatim}, quiet=frozenset({"nodes"}))
ELEMENTS = Text({"nodes": _elements, "elements": _elements}, empty="no elements")
EVENTS = Text({"events": _events}, quiet=frozenset({"view", "suggestions", "machineId"}), empty="no events")
ARTIFACTS = Text({"artifact": _artifact, "artifacts": _artifacts, "text": verbatim}, empty="no artifacts")
DIGEST = Text(always=frozenset({"sha256", "mode"}))

"""The shapes that results of several operations share, as a model reads them: pages, output, lists, diffs, elements, events."""

from typing import Any

from pydantic_core import to_json

from computer_linker.model.ids import short_id
from computer_linker.registry.text import Text, render, rows, table, tree, verbatim

_JOIN = "  "


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
    return f"{ended}, {seconds:.2f} s{left_out}{_view_of(data.get('view'))}"


def _view_of(view: Any) -> str:
    """The view that has a command's changes, which the folder has not."""
    if not view:
        return ""
    counts = [f"{view[name]} {name}" for name in ("added", "changed", "removed") if view.get(name)]
    return f", on view {view['viewId']}: {', '.join(counts) or 'no changes'} (view.show, view.keep, view.drop)"


def _stream(chunks: Any) -> str:
    return _typed("".join(chunk["text"] for chunk in chunks))


def _typed(text: Any) -> str:
    """What a program on a terminal printed: the terminal ends each line with two characters, of which one is enough."""
    return str(text).replace("\r\n", "\n")


def _entries(entries: Any) -> str:
    """One a line: folders end with a slash, and what was asked for beside the name follows it."""
    return "\n".join(_JOIN.join(map(str, _entry(entry))) for entry in entries)


def _entry(entry: dict[str, Any]) -> list[Any]:
    is_whole = {"path", "size", "modifiedAt"} <= entry.keys()
    name = entry["name"] if is_whole else entry.get("path", entry["name"])
    if entry.get("type") == "directory":
        return [f"{name}/"]
    more = [entry[each] for each in (("size",) if is_whole else ("size", "modifiedAt")) if each in entry]
    return [name, *more, *([entry["type"]] if entry.get("type", "file") != "file" else [])]


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


def _symbols(symbols: Any) -> str:
    """`path:line: signature`; of one file the path once, and what lies in a class indented below it."""
    paths = {symbol["path"] for symbol in symbols}
    if len(paths) > 1 or len(symbols) == 1:
        return "\n".join(f"{each['path']}:{each['line']}: {_symbol(each)}" for each in symbols)
    return "\n".join([*paths, *(f"{_inside(each)}{each['line']}: {_symbol(each)}" for each in symbols)])


def _symbol(symbol: dict[str, Any]) -> str:
    """The line that defines it; its kind before it where that line is its name alone."""
    name, line = symbol["name"], symbol.get("signature") or symbol["name"]
    return f"{symbol['kind']} {line}" if line == name else str(line)


def _inside(symbol: dict[str, Any]) -> str:
    """One step for the file, and one for each name that the symbol lies in."""
    container = symbol.get("container")
    return " " * (1 + (container.count(".") + 1 if container else 0))


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


def _diagnostics_head(data: dict[str, Any]) -> str:
    """How many problems are not listed since they are no news."""
    facts = [f"{data[name]} {text}" for name, text in _NO_NEWS.items() if data.get(name)]
    return ", ".join(facts if data.get("diagnostics") else ["no new problems" if facts else "no problems", *facts])


_NO_NEWS = {"known": "known before", "fixed": "fixed"}


def _edited_head(data: dict[str, Any]) -> str:
    count = data["changes"]
    return f"modified {data['path']}, {count} change{'' if count == 1 else 's'}"


def _commit_head(data: dict[str, Any]) -> str:
    count = len(data["files"])
    return f"committed {data['hash'][:10]}, {count} file{'' if count == 1 else 's'}"


def _status_head(data: dict[str, Any]) -> str:
    at = data.get("branch") or f"detached at {str(data.get('head'))[:9]}"
    apart = [f"{name} {data[name]}" for name in ("ahead", "behind") if data.get(name)]
    return ", ".join([f"on {at}", *apart, *(["clean"] if data.get("clean") else [])])


def _commits(commits: Any) -> str:
    return "\n".join(f"{one['hash'][:10]} {one['date'][:16]} {one['author']}: {one['subject']}" for one in commits)


def _views(views: Any) -> str:
    return "\n".join(
        f"{view['viewId']}: {'a program runs in it' if view['running'] else _changes_of(view)}, {view['op']} "
        f"{view['commandPreview']}, until {view['expiresAt']}"
        for view in views
    )


def _changes_of(view: dict[str, Any]) -> str:
    return "changes not known" if view["changes"] is None else f"{view['changes']} changed names, {view['bytes']} bytes"


def _view_changes(changes: Any) -> str:
    return "\n".join(_view_change(change) for change in changes)


def _view_change(change: dict[str, Any]) -> str:
    """One line: what happens to which name, and the facts that become others."""
    facts = [] if change["kind"] == "file" else [change["kind"]]
    if change.get("names"):
        facts.append(f"a folder of {change['names']} names goes")
    if change.get("renamedFrom"):
        facts.append(f"from {change['renamedFrom']}")
    if change.get("modeBefore"):
        facts.append(f"mode {change['modeBefore']} -> {change['mode']}")
    if change["additions"] or change["deletions"]:
        facts.append(f"+{change['additions']} -{change['deletions']}")
    elif change["kind"] == "file" and change.get("sizeBefore") not in (None, change["size"]):
        facts.append(f"{change['sizeBefore']} -> {change['size']} bytes")
    elif change["kind"] == "file":
        facts.append(f"{change['size']} bytes")
    if change.get("linkTarget"):
        facts.append(f"-> {change['linkTarget']}")
    if change.get("attributes"):
        facts.append(f"attributes {', '.join(change['attributes'])}")
    if change.get("otherNames"):
        facts.append(f"{change['otherNames']} other names keep the old content")
    return f"{change['action']} {change['path']}" + (f" ({', '.join(facts)})" if facts else "")


_MAX_NAMED_PATHS = 10


def _kept_head(data: dict[str, Any]) -> str:
    """What is in place now, by name while these are few, and what the view still has."""
    named = data["paths"] if len(data["paths"]) <= _MAX_NAMED_PATHS else [f"{data['kept']} changes"]
    left = f"; {data['left']} left in the view" if data["left"] else "; the view is gone"
    return f"kept {', '.join(named) or 'nothing'}{left}"


def _deleted_head(data: dict[str, Any]) -> str:
    return f"deleted {data['path']}" + (f", {data['entries']} entries" if data["entries"] != 1 else "")


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
    """One event a line. The day and the client are those of the line above where a line has none."""
    shown, day, client = [], "", ""
    for event in events:
        at, by = event["startedAt"][:19], str(event.get("client") or event.get("principal"))
        columns = _event(event, at if at[:10] != day else at[11:], f"by {by}" if by != client else "")
        shown.append(" ".join(filter(None, columns)))
        day, client = at[:10], by
    return "\n".join(shown)


def _event(event: dict[str, Any], at: str, by: str) -> list[str]:
    """The columns of one event; the id is there where undo may use it."""
    outcome = "ok" if event.get("ok") else str(event.get("errorCode") or event.get("outcome") or "failed")
    what = str(event.get("commandPreview") or event.get("target") or "")
    handle = f"({short_id(event['operationId'])})" if event.get("effect") else ""
    return [at, event["op"], what, outcome, by, handle]


def _artifact(artifact: Any) -> str:
    title = f' "{artifact["title"]}"' if artifact.get("title") else ""
    return f"{artifact['id']} {artifact['kind']}{title}, {artifact['size']} bytes"


def _artifacts(artifacts: Any) -> str:
    return "\n".join(_artifact(artifact) for artifact in artifacts)


def _overview(overview: Any) -> str:
    """`python 12, markdown 3; 20 files; npm: test, build; pyproject.toml`."""
    parts = [", ".join(f"{one['language']} {one['files']}" for one in overview["languages"])]
    parts.append(f"{overview['files']} files")
    scripts = ", ".join(script["name"] for script in overview["scripts"])
    if scripts:
        parts.append(f"{overview.get('packageManager') or 'scripts'}: {scripts}")
    return "; ".join(part for part in (*parts, ", ".join(overview["configFiles"])) if part)


def _changed(changes: Any) -> str:
    entries = _changes(changes["entries"])
    return _status_head(changes) + (f"\n{entries}" if entries else "")


def _paths(paths: Any) -> str:
    found = [{"path": path.rstrip("/"), "type": "directory" if path.endswith("/") else "file"} for path in paths]
    return tree(found)


def _next(requests: Any) -> str:
    shown = [{name: one[name] for name in ("op", "target", "input") if one[name]} for one in requests]
    return "next: " + "\nnext: ".join(
        f"{to_json(request).decode()} {one['why']}" for request, one in zip(shown, requests, strict=True)
    )


PAGE = Text({"content": verbatim}, head=_page_head, quiet=frozenset({"startLine", "document", "charset"}))
PAGES = Text({"files": _pages})
OUTPUT = Text({"stdout": verbatim}, head=_output_head, quiet=frozenset({"view"}))
STREAM = Text({"chunks": _stream}, head=_stream_head)
SENT = Text({"output": _typed}, head=_stream_head)
STARTED = Text(quiet=frozenset({"commandPreview"}))
COMMITTED = Text(head=_commit_head, quiet=frozenset({"files"}))
ENTRIES = Text({"entries": _entries}, quiet=frozenset({"truncated"}), empty="an empty folder")
TREE = Text({"entries": tree}, empty="an empty folder")
FILES = Text({"files": lines}, quiet=frozenset({"truncated"}), empty="no files")
MATCHES = Text({"matches": _matches}, quiet=frozenset({"truncated"}), empty="no matches")
SYMBOLS = Text({"symbols": _symbols}, empty="no symbols")
LOCATIONS = Text(
    {"locations": rows("{path}:{line}:{column}: {text}")}, quiet=frozenset({"total"}), empty="nothing found"
)
RELATIVES = Text({"items": rows("{path}:{line}:{column}: {name}: {text}")}, empty="none")
STATUS = Text({"entries": _changes, "diff": verbatim}, head=_status_head, quiet=frozenset({"counts"}))
DIFF = Text({"diff": verbatim}, quiet=frozenset({"files"}), empty="no differences")
VIEW = Text({"changes": _view_changes, "diff": verbatim}, empty="no changes")
KEPT = Text(
    {
        "merged": lambda paths: f"merged: {', '.join(paths)}",
        "refused": rows("not kept: {path}: {reason}"),
        "artifact": lambda artifact: f"evidence: {artifact}",
    },
    head=_kept_head,
    quiet=frozenset({"paths"}),
)
DELETED = Text(head=_deleted_head)
VIEWS = Text({"views": _views}, empty="no views")
COMMITS = Text({"commits": _commits}, empty="no commits")
COMMIT = Text({"commit": _commit, "diff": verbatim}, quiet=frozenset({"files"}))
PATCHED = Text({"files": rows("{action} {path} +{additions} -{deletions}")})
EDITED = Text({"files": rows("modified {path} +{additions} -{deletions}"), "diff": verbatim}, empty="nothing to change")
ACTIONS = Text(
    {
        "actions": rows("{kind}: {title}"),
        "files": rows("modified {path} +{additions} -{deletions}"),
        "diff": verbatim,
    },
    empty="no actions",
)
DIAGNOSTICS = Text({"diagnostics": rows("{path}:{line}:{column}: {severity}: {message}")}, head=_diagnostics_head)
DOCUMENT = Text(head=_edited_head, quiet=frozenset({"parts"}))
MAP = Text({"map": verbatim}, empty="no source files")
UNDONE = Text({"files": rows("{action} {path}")}, head=lambda data: f"undo of {data['op']}:")
PROCESSES = Text({"processes": table}, empty="no processes")
TEXT = Text({"text": verbatim})
OUTLINE = Text({"outline": verbatim}, quiet=frozenset({"nodes"}))
ELEMENTS = Text({"nodes": _elements, "elements": _elements}, empty="no elements")
EVENTS = Text({"events": _events}, quiet=frozenset({"view", "suggestions", "machineId"}), empty="no events")
CONTEXT = Text(
    {"overview": _overview, "instructions": _pages, "changes": _changed, "tree": _paths, "nextOperations": _next}
)
ARTIFACTS = Text({"artifact": _artifact, "artifacts": _artifacts, "text": verbatim}, empty="no artifacts")
DIGEST = Text(always=frozenset({"sha256", "mode"}))

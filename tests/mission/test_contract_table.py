"""The wire contract's table of operations, row by row: the names of target, input, options with their defaults, and data."""

import json
import re
from typing import Any

import pytest

from computer_linker import operations
from computer_linker.registry.catalog import collect
from computer_linker.service.catalogue import describe

CATALOG = collect(operations)
ROWS = """
computer.explain | | op target input | | allowed reason needs missing boundary
batch.run | | operations | stopOnError=true | results failed
file.stat | path | | hash=false | path type size modifiedAt mode sha256
file.list | dir | | maxResults=1000 includeHidden=true cursor | entries truncated nextCursor
file.tree | dir | | maxDepth=3 maxEntries=2000 gitignore=true cursor | entries truncated nextCursor
file.read | path | | startLine lineCount tailLines maxBytes=65536 encoding="auto" | path content sha256 size truncated startLine nextLine
file.read_many | | paths | maxBytes=65536 maxTotalBytes=1000000 | files
file.write | path | content encoding | createParents=false ifSha256 append=false | path size sha256 created
file.create | path | content encoding | createParents=false | path size sha256 created
file.mkdir | path | | parents=false | path created
file.patch | path | diff edits | dryRun=false ifSha256 | files
file.move | path | destination | overwrite=false createParents=false | from to
file.copy | path | destination | overwrite=false createParents=false | from to
file.delete | path | | recursive=false | path entries
file.undo | path | operationId last | dryRun=false | files
file.find | dir | pattern | maxResults=200 includeHidden=false gitignore=true cursor | files engine truncated nextCursor
file.search | dir | query | glob maxResults=100 ignoreCase=false fixedStrings=false contextBefore=0 contextAfter=0 includeHidden=false gitignore=true cursor | matches engine truncated nextCursor
code.context | dir | | maxEntries | overview instructions skills tree changes
code.search_symbols | dir | query | kind language maxResults=50 | symbols engine truncated
code.outline | path | | | symbols
git.status | dir | | includeDiff=false | branch ahead behind clean entries counts
git.changes | dir | | includeDiff=false | branch ahead behind clean entries counts
git.diff | dir | paths | staged=false base maxBytes=200000 contextLines=3 | diff truncated files
git.log | dir | paths | limit=20 ref | commits
git.show | dir | ref paths | maxBytes | commit diff truncated
git.stage | dir | paths | | staged
git.unstage | dir | paths | | staged
git.commit | dir | message | hooks=false | hash files
git.worktree_list | dir | | | worktrees
git.worktree_create | dir | path branch | | worktrees
package.list | dir | | | manager scripts
package.run | dir | script args | timeoutSeconds=60 maxOutputBytes=200000 view=false | exitCode signal timedOut stdout stderr truncated durationMs boundary
package.start | dir | script args | pty=false cols=120 rows=40 name | processId status commandPreview startedAt boundary
command.run | cwd | command env stdin | timeoutSeconds=60 maxOutputBytes=200000 view=false | exitCode signal timedOut stdout stderr truncated durationMs boundary
command.start | cwd | command env | pty=false cols=120 rows=40 name | processId status commandPreview startedAt boundary
command.read | id | | cursor=0 maxBytes=65536 waitSeconds=0 stream="all" | status exitCode chunks cursor dropped
command.send | id | text key | waitFor waitSeconds | cursor
command.stop | id | | signal="term" graceSeconds=5 | status exitCode
command.list | | | | processes
process.start | cwd | command env | pty=false cols=120 rows=40 name | processId status commandPreview startedAt boundary
process.read | id | | cursor=0 maxBytes=65536 waitSeconds=0 stream="all" | status exitCode chunks cursor dropped
process.send | id | text key | waitFor waitSeconds | cursor
process.stop | id | | signal="term" graceSeconds=5 | status exitCode
process.list | | | | processes
view.list | | | | views
view.show | id | | | changes diff hosts conflicts
view.keep | id | paths | | kept
view.drop | id | | | viewId
codex.run | cwd | prompt workflow="run" sessionId | timeoutSeconds model sandbox | sessionId exitCode stdout stderr finalMessage diffSummary
codex.start | cwd | prompt workflow="run" sessionId | timeoutSeconds model sandbox | sessionId
codex.read | id | | cursor=0 maxBytes=65536 waitSeconds=0 stream="all" | status exitCode chunks cursor dropped
codex.stop | id | | signal="term" graceSeconds=5 | status exitCode
codex.list | id | | | runs
screen.list | | | | permission displays windows
screen.capture | id | | format="png" maxWidth maxHeight region marks=false return="bytes" | frameId format width height scale bytesBase64 fileRef source
screen.capture_window | id | | format="png" maxWidth maxHeight region marks=false return="bytes" | frameId format width height scale bytesBase64 fileRef source
screen.capture_process | id | | format="png" maxWidth maxHeight region marks=false return="bytes" | frameId format width height scale bytesBase64 fileRef source
screen.ocr | id | | language | text lines
ui.tree | app | | maxDepth=8 maxNodes=2000 since | nodes truncated cursor
desktop.observe | route | | includeScreenshot=true includeTree=true maxDepth=8 maxNodes=2000 | executionId route frameId evidence
desktop.find | route | selector | | elements matched
desktop.click | ref | button count modifiers | verify=true | delivered method element
desktop.move | ref | | verify=true | delivered method
desktop.drag | ref | button modifiers to | verify=true | delivered method element
desktop.scroll | ref | modifiers delta | verify=true | delivered method element
desktop.type_text | ref | text | clearBefore=false verify=true | delivered method
desktop.press | ref | key | verify=true | delivered method
desktop.hotkey | ref | keys | verify=true | delivered method
desktop.wait_until | route | condition | timeoutSeconds=15 | matched elapsedMs
desktop.abort | id | | | aborted
window.list | | | | windows
window.focus | id | | | window
window.move | id | x y | | window
window.close | id | | | closed
app.list | | | | apps
app.open | id | | | app
app.close | id | | | closed
app.focus | id | | | app
clipboard.read | | | | text
clipboard.write | | text | |
confirm.issue | | op target input | ttlSeconds=60 | token expiresAt digest
confirm.list | | | | pending
artifact.attach | path | kind owner | | artifact
artifact.list | | kind owner | | artifacts
artifact.read | id | | | artifact
artifact.ingest | path | kind owner manifest | | artifacts
backend.status | | | | backends localFallback matrix
history.last | | query | limit=50 cursor | view events nextCursor
history.timeline | | query | limit=50 cursor | view events nextCursor
history.sessions | | query | limit=50 cursor | view events nextCursor sessions
history.connections | | query | limit=50 cursor | view events nextCursor connections
history.failed_replay | | query | limit=50 cursor | view events nextCursor templates
history.debug_bundle | | query | limit=50 cursor | view events nextCursor bundle
history.verify | | | | view events nextCursor valid
""".strip().splitlines()
NESTED = """
file.list result entries: name path type size modifiedAt
file.tree result entries: path type size
file.patch input edits: path oldText newText replaceAll
file.patch result files: path action additions deletions sha256
file.undo result files: path action
file.search result matches: path line column preview before after
code.search_symbols result symbols: name kind path line endLine container signature
git.status result entries: path index worktree renamedFrom
git.log result commits: hash author date subject
command.read result chunks: stream text
view.show result changes: path action kind additions deletions mode
screen.ocr result lines: text bounds confidence
ui.tree result nodes: ref role name value states bounds actions parent
desktop.find input selector: role name nameContains valueContains states limit
desktop.wait_until input condition: selectorExists selectorGone textAppears windowTitle idle
artifact.attach result artifact: id kind sha256 size path
artifact.list result artifacts: id kind sha256 size path
artifact.ingest result artifacts: id kind sha256 size path
codex.run result diffSummary: changedFiles insertions deletions
""".strip().splitlines()
_NAME = re.compile(r'(\w+)(?:=("[^"]*"|\S+))?')


def fields(text: str) -> list[tuple[str, str]]:
    return [(found[1], found[2] or "") for found in _NAME.finditer(text)]


def properties(schema: Any) -> dict[str, Any]:
    found: dict[str, Any] = (schema or {}).get("properties", {})
    return found


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split(" |")[0])
def test_the_row_of_the_contract_holds(row: str) -> None:
    op, target, given, options, data = (part.strip() for part in row.split("|"))
    entry = describe(CATALOG.by_name[op])
    assert not target or entry["target"] is not None
    for part, text in (("input", given), ("options", options), ("result", data)):
        known = properties(entry[part])
        for name, default in fields(text):
            assert name in known, (part, name, sorted(known))
            assert not default or known[name].get("default") == json.loads(default), (part, name)
        if part != "result" and entry[part]:
            assert entry[part]["additionalProperties"] is False, "an unknown field is refused"


def members(schema: dict[str, Any], part: dict[str, Any]) -> set[str]:
    """The fields of one part of a schema, whether it is an object, a list of them, or may be absent."""
    if "$ref" in part:
        return members(schema, schema["$defs"][part["$ref"].rpartition("/")[2]])
    choices = [*part.get("anyOf", []), *part.get("oneOf", []), *([part["items"]] if "items" in part else [])]
    return set(part.get("properties", {})).union(*(members(schema, choice) for choice in choices))


@pytest.mark.parametrize("row", NESTED, ids=lambda row: row.partition(":")[0])
def test_the_parts_of_a_field_are_those_of_the_contract(row: str) -> None:
    place, _, names = row.partition(":")
    op, part, field = place.split()
    schema = describe(CATALOG.by_name[op])[part]
    assert set(names.split()) <= members(schema, schema["properties"][field])

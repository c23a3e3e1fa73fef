"""Thirty everyday tasks as the calls that solve them: ours, two other MCP servers', and the shell's."""

from dataclasses import dataclass
from typing import Any

Call = tuple[str, dict[str, Any]]
PROGRAM = 'def greet(name):\n    return f"Hello, {name}!"\n'


@dataclass(frozen=True)
class Task:
    """One task. None: that server cannot do it. `{root}` in a value is the project's folder."""

    name: str
    ours: list[Call]
    filesystem: list[Call] | None
    commander: list[Call] | None
    shell: list[str]


def op(name: str, target: Any = None, **parts: Any) -> Call:
    """A call of ours."""
    given = {} if target is None else {"target": target}
    return "computer_operation", {"scope": "app", "op": name, **given, **parts}


def fs(name: str, path: str | None = None, **rest: Any) -> Call:
    """A call whose path is below the project's folder."""
    return name, {**({} if path is None else {"path": "{root}" + (f"/{path}" if path else "")}), **rest}


def sh(command: str) -> Call:
    """A command of Desktop Commander's."""
    return "start_process", {"command": f"cd {{root}} && {command}", "timeout_ms": 15000}


def edit(old: str, new: str) -> dict[str, str]:
    return {"oldText": old, "newText": new}


def dc_edit(path: str, old: str, new: str) -> Call:
    return "edit_block", {"file_path": f"{{root}}/{path}", "old_string": old, "new_string": new}


TASKS = [
    Task("read a file", [op("file.read", "src/greet.py")], [fs("read_text_file", "src/greet.py")],
         [fs("read_file", "src/greet.py")], ["cat src/greet.py"]),
    Task("read lines 200 to 239 of a log", [op("file.read", "app.log", options={"startLine": 200, "lineCount": 40})],
         [fs("read_text_file", "app.log", head=239)], [fs("read_file", "app.log", offset=199, length=40)],
         ["sed -n 200,239p app.log"]),
    Task("read the end of a log", [op("file.read", "app.log", options={"tailLines": 20})],
         [fs("read_text_file", "app.log", tail=20)], [fs("read_file", "app.log", offset=-20)], ["tail -20 app.log"]),
    Task("list a folder", [op("file.list", "src")], [fs("list_directory", "src")],
         [fs("list_directory", "src", depth=1)], ["ls src"]),
    Task("look at a picture", [op("file.read", "logo.png", options={"encoding": "image"})],
         [fs("read_media_file", "logo.png")], [fs("read_file", "logo.png")], ["file logo.png"]),
    Task("see the whole tree", [op("file.tree", ".")], [fs("directory_tree", "", excludePatterns=[".git"])],
         [fs("list_directory", "", depth=3)], ["find . -path ./.git -prune -o -print"]),
    Task("find files by name", [op("file.find", input={"pattern": "*.md"})], [fs("search_files", "", pattern="**/*.md")],
         [sh("find . -name '*.md'")], ["find . -name '*.md'"]),
    Task("search a text", [op("file.search", "src", input={"query": "greet"})], None, [sh("grep -rn greet src")],
         ["grep -rn greet src"]),
    Task("search with context", [op("file.search", "src", input={"query": "total"}, options={"contextAfter": 2})], None,
         [sh("grep -rn -A2 total src")], ["grep -rn -A2 total src"]),
    Task("read three files", [op("file.read_many", input={"paths": ["src/greet.py", "src/shop.py", "README.md"]})],
         [("read_multiple_files", {"paths": ["{root}/src/greet.py", "{root}/src/shop.py", "{root}/README.md"]})],
         [("read_multiple_files", {"paths": ["{root}/src/greet.py", "{root}/src/shop.py", "{root}/README.md"]})],
         ["cat src/greet.py src/shop.py README.md"]),
    Task("facts of a file", [op("file.stat", "README.md")], [fs("get_file_info", "README.md")],
         [fs("get_file_info", "README.md")], ["stat README.md"]),
    Task("write a new file", [op("file.write", "new.py", input={"content": PROGRAM})],
         [fs("write_file", "new.py", content=PROGRAM)], [fs("write_file", "new.py", content=PROGRAM)],
         ["printf 'def greet(name):\\n    pass\\n' > new.py"]),
    Task("replace a file", [op("file.write", "src/greet.py", input={"content": PROGRAM})],
         [fs("write_file", "src/greet.py", content=PROGRAM)],
         [fs("write_file", "src/greet.py", content=PROGRAM, mode="rewrite")],
         ["printf 'def greet(name):\\n    pass\\n' > src/greet.py"]),
    Task("change one place", [op("file.patch", "src/shop.py", input={"edits": [edit("TAX = 0.2", "TAX = 0.25")]})],
         [fs("edit_file", "src/shop.py", edits=[edit("TAX = 0.2", "TAX = 0.25")])],
         [dc_edit("src/shop.py", "TAX = 0.2", "TAX = 0.25")], ["sed -i 's/TAX = 0.2/TAX = 0.25/' src/shop.py"]),
    Task("change three places of a file", [op("file.patch", "src/shop.py", input={"edits": [
        edit("TAX = 0.2", "TAX = 0.25"), edit("def price", "def gross"), edit("def total", "def sum_of")]})],
         [fs("edit_file", "src/shop.py", edits=[
             edit("TAX = 0.2", "TAX = 0.25"), edit("def price", "def gross"), edit("def total", "def sum_of")])],
         [dc_edit("src/shop.py", "TAX = 0.2", "TAX = 0.25"), dc_edit("src/shop.py", "def price", "def gross"),
          dc_edit("src/shop.py", "def total", "def sum_of")],
         ["sed -i 's/TAX = 0.2/TAX = 0.25/; s/def price/def gross/; s/def total/def sum_of/' src/shop.py"]),
    Task("rename a function in two files", [op("file.patch", input={"edits": [
        {"path": "src/greet.py", **edit("def greet", "def hello")},
        {"path": "src/main.py", "replaceAll": True, **edit("greet(", "hello(")},
        {"path": "src/main.py", **edit("import greet", "import hello")}]})],
         [fs("edit_file", "src/greet.py", edits=[edit("def greet", "def hello")]),
          fs("edit_file", "src/main.py", edits=[edit("greet(", "hello("), edit("import greet", "import hello")])],
         [dc_edit("src/greet.py", "def greet", "def hello"), dc_edit("src/main.py", "greet(", "hello("),
          dc_edit("src/main.py", "import greet", "import hello")],
         ["sed -i 's/def greet/def hello/' src/greet.py && sed -i 's/greet(/hello(/; s/import greet/import hello/' src/main.py"]),
    Task("move a file", [op("file.move", "README.md", input={"destination": "docs/README.md"})],
         [("move_file", {"source": "{root}/README.md", "destination": "{root}/docs/README.md"})],
         [("move_file", {"source": "{root}/README.md", "destination": "{root}/docs/README.md"})],
         ["mv README.md docs/README.md"]),
    Task("make a folder", [op("file.mkdir", "made")], [fs("create_directory", "made")], [fs("create_directory", "made")],
         ["mkdir made"]),
    Task("copy a file", [op("file.copy", "README.md", input={"destination": "copy.md"})], None,
         [sh("cp README.md copy.md")], ["cp README.md copy.md"]),
    Task("delete a file", [op("file.delete", "notes.txt")], None, [sh("rm notes.txt")], ["rm notes.txt"]),
    Task("run the tests", [op("command.run", input={"command": ["python3", "-m", "unittest", "-v"]})], None,
         [sh("python3 -m unittest -v")], ["python3 -m unittest -v 2>&1"]),
    Task("run a program that fails", [op("command.run", input={"command": ["python3", "src/broken.py"]})], None,
         [sh("python3 src/broken.py")], ["python3 src/broken.py 2>&1"]),
    Task("run a program with long output", [op("command.run", input={"command": ["cat", "app.log"]})], None,
         [sh("cat app.log")], ["cat app.log"]),
    Task("drive a prompt", [op("command.start", input={"command": ["python3", "src/ask.py"]}, options={"pty": True}),
                            op("command.send", "{last}", input={"text": "Ann\n"}, options={"waitFor": "Hello"})], None,
         [sh("python3 src/ask.py"), ("interact_with_process", {"pid": "{last}", "input": "Ann"})],
         ["echo Ann | python3 src/ask.py"]),
    Task("see what changed", [op("git.status", ".")], None, [sh("git status --short --branch")],
         ["git status --short --branch"]),
    Task("see the difference", [op("git.diff", ".")], None, [sh("git diff")], ["git diff"]),
    Task("see the last commits", [op("git.log", ".", options={"limit": 5})], None, [sh("git log --oneline -5")],
         ["git log --oneline -5"]),
    Task("stage and commit", [op("batch.run", input={"operations": [
        {"op": "git.stage", "target": ".", "input": {"paths": ["notes.txt"]}},
        {"op": "git.commit", "target": ".", "input": {"message": "Note"}}]}, options={"stopOnError": True})], None,
         [sh("git add notes.txt && git commit -q -m Note")], ["git add notes.txt && git commit -q -m Note"]),
    Task("find and fix", [op("file.search", "src", input={"query": "TAX ="}),
                          op("file.patch", "src/shop.py", input={"edits": [edit("TAX = 0.2", "TAX = 0.25")]})],
         [fs("read_text_file", "src/greet.py"), fs("read_text_file", "src/shop.py"),
          fs("edit_file", "src/shop.py", edits=[edit("TAX = 0.2", "TAX = 0.25")])],
         [sh("grep -rn 'TAX =' src"), dc_edit("src/shop.py", "TAX = 0.2", "TAX = 0.25")],
         ["grep -rn 'TAX =' src", "sed -i 's/TAX = 0.2/TAX = 0.25/' src/shop.py"]),
    Task("count the errors of a log", [op("file.search", "app.log", input={"query": "ERROR"})],
         [fs("read_text_file", "app.log")], [sh("grep -n ERROR app.log")], ["grep -n ERROR app.log"]),
]  # fmt: skip
"""Every task leaves the project as `git` can put it back; the bench does so after each."""

"""The catalogue: every operation of a package, checked while it is collected."""

import importlib
import importlib.util
import pkgutil
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any, Literal, get_args

from computer_linker.audit.replay import Needs
from computer_linker.errors import UnknownOperation
from computer_linker.model.base import Model
from computer_linker.model.envelope import Call
from computer_linker.registry.operation import Operation

_PARAMETERS = ("target", "input", "options")


class CatalogError(Exception):
    """An operation cannot be served; the message names the file and what is wrong."""


@dataclass(frozen=True)
class Catalog:
    """Operations by name, aliases included."""

    operations: Mapping[str, Operation]
    by_name: Mapping[str, Operation]
    accepts_older: bool = False
    """True where the older names of older_names.py are accepted too."""

    def with_older_names(self) -> "Catalog":
        """The same operations, also under their older names."""
        older = {name: self.by_name[was.op] for name, was in OLDER.items() if was.op in self.by_name}
        return Catalog(self.operations, {**older, **self.by_name}, True)

    def lacks(self, name: object) -> bool:
        """True when every operation has to be imported to know whether there is one of this name."""
        return type(name) is str and isinstance(self.by_name, OnDemand) and not self.by_name.is_at_hand(name)

    def load(self) -> None:
        """Import every operation; blocking, for most of a second."""
        len(self.by_name)

    def current(self, call: Call) -> Call:
        """The call under its operation's own names, where it came under older ones."""
        if not self.accepts_older or (call.op not in OLDER and call.op not in FIELDS):
            return call
        # Imported late: older calls are rare, and the translation needs the schemas.
        from computer_linker.registry.older_calls import translate

        given = {"target": call.target, "input": call.input, "options": call.options}
        made = translate(self, call.op, given)
        return replace(
            call, target=made.get("target"), input=made.get("input"), options=made.get("options"), op=made["op"]
        )

    def find(self, name: str) -> Operation:
        """The operation of this name or alias."""
        found = self.by_name.get(name)
        if found is None:
            from computer_linker.registry.schema import signature

            meant = similar(name, self.by_name)
            raise UnknownOperation(
                f"There is no operation {name[:80]!r}. get_computer_info lists those you can use.",
                similar=meant,
                **({"signature": signature(self.by_name[meant[0]])} if meant else {}),
            )
        return found


def collect(package: ModuleType) -> Catalog:
    """Import every module of `package` and gather its operation. Raises CatalogError for the first invalid one."""
    operations: dict[str, Operation] = {}
    by_name: dict[str, Operation] = {}
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if module.ispkg:
            continue
        found = [value for value in vars(importlib.import_module(module.name)).values() if isinstance(value, Operation)]
        own = [op for op in found if op.run.__module__ == module.name]
        for op in own:
            check(op, module.name.removeprefix(package.__name__ + "."))
            operations[op.name] = op
            for name in (op.name, *op.aliases):
                if name in by_name:
                    raise CatalogError(f"{module.name}: the name {name} is taken by {by_name[name].run.__module__}")
                by_name[name] = op
    return Catalog(dict(sorted(operations.items())), by_name)


def collect_on_demand(package: ModuleType) -> Catalog:
    """The same catalogue with its older names, each operation imported when it is first asked for.

    The import of all of them is half of a service's start. What looks at all of them imports all; `load` does it in a thread.
    """
    whole: list[Catalog] = []

    def load() -> Catalog:
        if not whole:
            whole.append(collect(package).with_older_names())
        return whole[0]

    def one(name: str) -> Operation | None:
        return find_one(package.__name__, OLDER[name].op if name in OLDER else name)

    operations = OnDemand(lambda: load().operations, lambda name: None if name in OLDER else one(name))
    return Catalog(operations, OnDemand(lambda: load().by_name, one), True)


class OnDemand(Mapping[str, Operation]):
    """Operations by name: one is imported alone, and all for everything else."""

    def __init__(self, whole: Callable[[], Mapping[str, Operation]], one: Callable[[str], Operation | None]) -> None:
        self._whole, self._one = whole, one
        self._found: dict[str, Operation] = {}
        self._all: Mapping[str, Operation] | None = None

    def is_at_hand(self, name: str) -> bool:
        """True when the name is found, or known not to be there, without the import of all."""
        return self._all is not None or self._alone(name) is not None

    def __getitem__(self, name: str) -> Operation:
        if self._all is not None:
            return self._all[name]
        return self._alone(name) or self._load()[name]

    def _alone(self, name: str) -> Operation | None:
        found = self._found.get(name) or self._one(name)
        if found is not None:
            self._found[name] = found
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._load())

    def __len__(self) -> int:
        return len(self._load())

    def _load(self) -> Mapping[str, Operation]:
        if self._all is None:
            self._all = self._whole()
        return self._all


def find_one(package: str, name: str) -> Operation | None:
    """The operation of this name from its own file: one import where the whole catalogue would be a hundred."""
    module = f"{package}.{name}"
    if not re.fullmatch(r"[a-z_]+(\.[a-z_]+)?", name):
        return None
    if importlib.util.find_spec(module.rpartition(".")[0]) is None or importlib.util.find_spec(module) is None:
        return None
    found = vars(importlib.import_module(module)).values()
    return next((value for value in found if isinstance(value, Operation) and value.name == name), None)


def check(op: Operation, place: str) -> None:
    """Refuse an operation whose name differs from its file, or that lacks what is derived from it."""
    if op.name != place:
        raise CatalogError(f"operations/{place.replace('.', '/')}.py defines {op.name}; name and file must agree")
    if op.run.__name__ != op.name.replace(".", "_"):
        raise CatalogError(f"{op.name}: the function must be called {op.name.replace('.', '_')}")
    if not op.summary:
        raise CatalogError(f"{op.name}: the function needs a docstring, it reaches users")
    if not op.examples:
        raise CatalogError(f"{op.name}: at least one example is needed")
    for name in op.parameters:
        if name not in _PARAMETERS:
            raise CatalogError(f"{op.name}: parameter {name} is not one of ctx, target, input, options")


def check_types(op: Operation) -> None:
    """Refuse an operation whose input, options or result is not a Model (slower: it resolves annotations).

    A result may be one of several.
    """
    result = op.hints.get("return")
    if not all(isinstance(each, type) and issubclass(each, Model) for each in get_args(result) or (result,)):
        raise CatalogError(f"{op.name}: the result must be a Model")


def similar(name: str, known: Mapping[str, object]) -> list[str]:
    """Up to three known names that resemble this one, those before them that other programs call so (`edit`, `grep`)."""
    import difflib

    words = [name, *reversed(re.split(r"[._]", name[:80]))]
    meant = [op for word in words if (op := OLDER[word].op if word in OLDER else CALLED.get(word, "")) in known]
    near = difflib.get_close_matches(name[:80], known, n=8, cutoff=0.6)
    # The library's ratio takes `file.tree` for as near to `file.reed` as `file.read`.
    near.sort(key=lambda one: _edits(name[:80], one))
    close = (OLDER[one].op if one in OLDER else one for one in near)
    return list(dict.fromkeys([*meant[:1], *close]))[:3]


def _edits(one: str, other: str) -> int:
    """How many characters have to be added, removed or replaced to make one word of the other."""
    row = list(range(len(other) + 1))
    for at, char in enumerate(one, 1):
        before, row[0] = row[0], at
        for place, wanted in enumerate(other, 1):
            before, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, before + (char != wanted))
    return row[-1]


CALLED = {
    **dict.fromkeys("bash exec execute run sh terminal powershell".split(), "command.run"),
    **dict.fromkeys("cat open view".split(), "file.read"),
    **dict.fromkeys("replace multiedit".split(), "file.patch"),
    "search": "file.search", "rm": "file.delete", "cp": "file.copy", "mv": "file.move", "undo": "file.undo",
    "add": "git.stage",
}  # fmt: skip
"""What other programs call an operation; suggested, never taken."""


def needs_of(name: str) -> Needs | None:
    """Which parts of a request a client's operation cannot do without; None for one that does not exist."""
    op = find_one("computer_linker.operations", name)
    if op is None:
        return None
    needed = {part for part, parameter in op.parameters.items() if parameter.default is parameter.empty}
    return Needs("target" in needed, "input" in needed)


# The older operation names: the current operation of each, and the older names of its fields.

Permission = Literal["read", "write", "shell", "codex", "screen"]


@dataclass(frozen=True, slots=True)
class Older:
    """One older operation."""

    op: str
    permission: Permission
    target: tuple[str, ...] = ("path",)
    """The fields that named its target; the first one given is used."""
    renamed: dict[str, str] = field(default_factory=dict)
    input: dict[str, Any] = field(default_factory=dict)
    """Input implied by the older name."""


FIELDS: dict[str, dict[str, str]] = {
    "file.search": {"before": "contextBefore", "after": "contextAfter", "caseSensitive": "!ignoreCase"},
    "file.find": {"limit": "maxResults"},
}
"""Other names of options under the operation's own name; `!` takes the opposite of a flag."""

_SEARCH = {"pattern": "query", **FIELDS["file.search"]}
_CWD = ("cwd", "path")
_PROCESS = ("processId", "id")
_LIMIT = {"maxResults": "limit"}

OLDER: dict[str, Older] = {
    "read": Older("file.read", "read"),
    "read_many": Older("file.read_many", "read", ()),
    "ls": Older("file.list", "read"),
    "list": Older("file.list", "read"),
    "tree": Older("file.tree", "read"),
    "stat": Older("file.stat", "read"),
    "path_info": Older("file.stat", "read"),
    "find_files": Older("file.find", "read", renamed={"query": "pattern", "glob": "pattern"}),
    "glob": Older("file.find", "read", renamed={"glob": "pattern"}),
    "search_text": Older("file.search", "read", renamed=_SEARCH),
    "grep": Older("file.search", "read", renamed=_SEARCH),
    "search_symbols": Older("code.search_symbols", "read"),
    "instructions": Older("code.context", "read"),
    "agent_skills": Older("code.context", "read"),
    "coding_context": Older("code.context", "read"),
    "project_overview": Older("code.context", "read"),
    "write": Older("file.write", "write"),
    "write_if_unchanged": Older("file.write", "write", renamed={"expectedSha256": "ifSha256", "sha256": "ifSha256"}),
    "create_file": Older("file.create", "write"),
    "edit": Older("file.patch", "write"),
    "patch": Older("file.patch", "write", renamed={"expectedSha256": "ifSha256"}),
    "mkdir": Older("file.mkdir", "write", renamed={"recursive": "parents"}),
    "move": Older("file.move", "write", ("path", "from"), {"to": "destination", "targetPath": "destination"}),
    "delete": Older("file.delete", "write"),
    "change_summary": Older("git.status", "read"),
    "repo_status": Older("git.status", "read"),
    "git_changes": Older("git.status", "read"),
    "git_diff": Older("git.diff", "read"),
    "git_log": Older("git.log", "read", renamed=_LIMIT),
    "git_show": Older("git.show", "read", renamed={"object": "ref", "commit": "ref"}),
    "git_stage": Older("git.stage", "write"),
    "git_unstage": Older("git.unstage", "write"),
    "git_commit": Older("git.commit", "write"),
    "git_worktree_list": Older("git.worktree_list", "read"),
    "git_worktree_create": Older("git.worktree_create", "write", ("repo", "cwd"), {"targetPath": "path"}),
    "command": Older("command.run", "shell", _CWD),
    "shell": Older("command.run", "shell", _CWD),
    "package_run": Older("package.run", "shell", _CWD),
    "package_start": Older("package.start", "shell", _CWD),
    "process_start": Older("command.start", "shell", _CWD),
    "process_list": Older("command.list", "shell", ()),
    "process_read": Older("command.read", "shell", _PROCESS),
    "process_stop": Older("command.stop", "shell", _PROCESS),
    "codex": Older("codex.run", "codex", _CWD),
    "codex_start": Older("codex.start", "codex", _CWD),
    "codex_runs": Older("codex.list", "codex", ("id", "runId", "sessionId"), _LIMIT),
    **{
        f"codex_{workflow}": Older("codex.run", "codex", _CWD, input={"workflow": workflow})
        for workflow in ("plan", "review", "fix", "test", "continue")
    },
    "screen_status": Older("screen.list", "screen", ()),
    "screen_list": Older("screen.list", "screen", ()),
    "screen_capture": Older("screen.capture", "screen", ("display", "displayId")),
    "screen_capture_window": Older("screen.capture_window", "screen", ("window", "windowId")),
    "screen_capture_process": Older("screen.capture_process", "screen", ("process", "processId", "pid")),
    "history": Older("history.last", "read", ()),
    "history_insight": Older("history.last", "read", ()),
    "explain_operation": Older("computer.explain", "read", ()),
    "batch": Older("batch.run", "read", ()),
}

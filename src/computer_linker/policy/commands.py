"""Which commands a scope allows: rules over one argv whose program is already an absolute file."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePath

from computer_linker.errors import InvalidRequest, LinkError, PermissionDenied, ProviderUnavailable
from computer_linker.model.principal import Principal
from computer_linker.model.scope import CommandRule, Scope, ScopePolicy
from computer_linker.policy.command_line import to_argv
from computer_linker.policy.engine import FolderAccess, sees_scope
from computer_linker.policy.read_only import is_read_only
from computer_linker.policy.shell_line import Unknown, Word, Words
from computer_linker.policy.starters import every_start, name_of
from computer_linker.policy.subcommands import behind_option, foreign_to_git, is_meant

Locate = Callable[[str], str | None]
"""The absolute file a program name means on the trusted search path; None when there is none."""

LAUNCHES_ANYTHING = frozenset(
    """
    sh bash dash zsh ksh fish csh tcsh busybox toybox env nohup nice ionice chrt taskset setsid stdbuf timeout time unshare
    nsenter chroot runuser su sudo doas pkexec xargs parallel find watch strace ltrace gdb script expect ssh socat
    python python2 python3 node nodejs deno bun ruby perl php lua tclsh awk gawk mawk sed vim vi nvim ex emacs ed less more
    man tar zip rsync git npm npx pnpm yarn make just cargo go docker podman kubectl systemd-run at batch crontab
    """.split()
)
"""Programs that run other programs: allowing one allows everything, unless a kernel boundary holds."""


@dataclass(frozen=True, slots=True)
class Program:
    """The file a command would execute."""

    path: str
    """Absolute, its folder resolved, the last name as found (a multi-call program keeps its name)."""
    real: str
    """The file at the end of all links."""
    is_writable_by_scope: bool
    """True when it lies in the scope's own folders, so that a caller who writes there chooses what runs."""
    writable_by: str | None = None
    """Another scope that could have replaced it or its interpreter; None when none could."""
    project_name: str = ""
    """The name it stands for in the scope's own virtual environment or node_modules/.bin; empty for others."""
    also_writable_by: str | None = None
    """For such a program: another scope that could have replaced it too."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One pattern: a program, then one glob an argument; a last `*` stands for any number of arguments."""

    program: str
    arguments: tuple[str, ...]
    takes_rest: bool

    @property
    def names_a_path(self) -> bool:
        return "/" in self.program

    def surely_fits(self, arguments: Words) -> bool:
        """True when the arguments after the program fit, whatever the unknown ones become."""
        size = len(self.arguments)
        known = arguments[:size]
        if len(known) < size or (len(arguments) > size and not self.takes_rest):
            return False
        return all(
            glob == "*" and not given.many if isinstance(given, Unknown) else _fits(glob, given)
            for glob, given in zip(self.arguments, known, strict=True)
        )

    @property
    def program_name(self) -> str:
        return PurePath(self.program).name

    def could_fit(self, arguments: Words) -> bool:
        """True when the arguments after the program fit, or could: where some are unknown, or behind its options."""
        end = len(self.arguments)
        # How many of the rule's arguments are found, and whether the next argument is an option's value.
        states = {(0, False)}
        for given in arguments:
            if isinstance(given, Unknown) and given.many:
                first = min(place for place, _ in states)
                states = {(place, owed) for place in range(first, end + 1) for owed in (False, place < end)}
            else:
                states = {after for state in states for after in self._after(*state, given)}
            if not states:
                return False
        return (end, False) in states

    def _after(self, place: int, is_value: bool, given: Word) -> Iterator[tuple[int, bool]]:
        if is_value:
            yield place, False
        elif place == len(self.arguments):
            if self.takes_rest:
                yield place, False
        else:
            if isinstance(given, Unknown) or self._denotes(place, given):
                yield place + 1, False
            for has_value in behind_option(self.program_name, given, is_first=place == 0):
                yield place, has_value

    def _denotes(self, place: int, given: str) -> bool:
        glob = self.arguments[place]
        return _fits(glob, given) or (place == 0 and is_meant(self.program_name, glob, given))


def judge_command(
    policy: ScopePolicy,
    argv: list[str],
    program: Program,
    locate: Locate,
    *,
    scope: str = "",
    boundary_holds: bool = False,
) -> None:
    """Raise PermissionDenied unless the scope's rules allow this argv. Denied rules win.

    Inside a boundary ordinary programs that only read need no rule.
    """
    words: Words = tuple(argv)
    judge_denied(policy, words, program, locate)
    if policy.allowed_commands is None or is_allowed(policy, words, program, locate, boundary_holds=boundary_holds):
        return
    raise not_allowed(policy, words, scope, boundary_holds=boundary_holds)


def judge_denied(policy: ScopePolicy, words: Words, program: Program | None, locate: Locate) -> None:
    """Raise PermissionDenied for a command that a denied rule fits, or could fit where a word cannot be read."""
    if not (rules := _rules(policy.denied_commands)):
        return
    for at, each in enumerate(every_start(words)):
        if at and isinstance(each[0], Unknown):
            continue
        for entry, rule in zip(policy.denied_commands, rules, strict=True):
            if (why := _denial(rule, each, program if at == 0 else None, locate)) is not None:
                raise PermissionDenied(
                    f"This scope's policy denies {name_of(each[0]) or 'what cannot be read here'} with these arguments "
                    f"(`{_pattern(entry)}`){why}. Only the owner can change that.",
                    rule="deniedCommands",
                )


def is_allowed(policy: ScopePolicy, words: Words, program: Program, locate: Locate, *, boundary_holds: bool) -> bool:
    """True when a rule of the scope, or its being a program that only reads, lets this command run."""
    if boundary_holds and is_ordinary(words, program, locate):
        return True
    listed = policy.allowed_commands or []
    return any(_allows(rule, words, program, locate, boundary_holds=boundary_holds) for rule in _rules(listed))


def is_ordinary(words: Words, program: Program, locate: Locate) -> bool:
    """True for the system's own program of a listed name, with arguments that keep it reading."""
    if program.is_writable_by_scope or program.writable_by is not None or not isinstance(words[0], str):
        return False
    name = name_of(words[0])
    return locate(name) == program.path and is_read_only((name, *words[1:]))


_OWN_PROGRAM = "computer-linker"


def not_allowed(policy: ScopePolicy, words: Words, scope: str, *, boundary_holds: bool) -> PermissionDenied:
    """The refusal: what may run here, and the owner's command that would allow this."""
    name = name_of(words[0]) or "a program that cannot be read from the line"
    allowed = sorted({_pattern(entry).split()[0] for entry in policy.allowed_commands or []})
    may_run = (
        f"Allowed here: {', '.join(allowed[:20])}{' …' if len(allowed) > 20 else ''}" if allowed else "None is listed"
    )
    if boundary_holds:
        may_run += ", and programs that only read (ls, cat, grep, find, head, sort, diff, jq, rg, sed -n …)"
    refused = f"This scope's policy does not allow {name} with these arguments. {may_run}."
    if name == _OWN_PROGRAM:
        # No rule is suggested: with one, a client could ask for its owner's rights.
        return PermissionDenied(f"{refused} {name} is for the owner of this computer alone.", rule="allowedCommands")
    line = f'computer-linker scope allow {scope or "ID"} "{suggested(words)}"'
    return PermissionDenied(
        f"{refused} The owner can allow it: {line}",
        rule="allowedCommands",
        program=name_of(words[0]),
        allowed=allowed[:50],
        remedy=line,
    )


def suggested(words: Words) -> str:
    """A pattern for `allowedCommands` that would fit: the program, and its first word where that names what it does."""
    name = words[0] if isinstance(words[0], str) else "PROGRAM"
    first = words[1] if len(words) > 1 else ""
    is_verb = isinstance(first, str) and re.fullmatch(r"[a-z][a-z0-9:_-]{0,30}", first) is not None
    return f"{name} {first} *" if is_verb else f"{name} *"


def judge_boundary(
    scope: Scope, *, boundary_holds: bool, shell: bool, program: Program, only_reads: bool = False
) -> None:
    """Raise unless a command may run under the available boundary. `only_reads`: an ordinary program that only reads."""
    policy = scope.policy
    if policy.sandbox == "required" and not boundary_holds:
        raise ProviderUnavailable(
            "This scope runs commands only inside a kernel sandbox, and none can be had here. "
            "Install bubblewrap, then run `computer-linker sandbox check`.",
            remedy="Install bubblewrap.",
        )
    is_agreed = "policy" in scope.model_fields_set or only_reads
    if policy.allowed_commands is None and not (is_agreed and boundary_holds):
        raise PermissionDenied(
            f"Scope {scope.id} has no list of allowed commands, and no kernel sandbox was agreed that would hold any. "
            "Give its policy `allowedCommands`, or a `sandbox` that this machine can provide.",
            rule="allowedCommands",
        )
    if shell and not boundary_holds:
        raise PermissionDenied("A shell runs only inside the kernel sandbox, and none holds here.", rule="allowShell")
    if program.is_writable_by_scope and not boundary_holds:
        raise PermissionDenied(
            "The program lies inside the scope, where its bytes can be changed, and no kernel sandbox holds.",
            rule="programInScope",
        )


def judge_access(access: FolderAccess, *, boundary_holds: bool) -> None:
    """Raise when the caller may do less with the scope's folders than a command could, and no boundary would hold it."""
    if access == "writable" or boundary_holds:
        return
    lacks = "fs:write" if access == "read-only" else "fs:read"
    raise PermissionDenied(
        f"The scope or this caller lacks {lacks}, and no kernel sandbox holds here that would keep a command to that. "
        "Install bubblewrap, or grant reading and writing.",
        rule="access",
        missing=[lacks],
    )


def judge_program(program: Program, principal: Principal) -> None:
    """Raise for a program that another scope could have replaced: its writer would choose what runs here."""
    if program.writable_by is None:
        return
    # A caller learns only the names of scopes that it may use.
    scope = f"scope {program.writable_by}" if sees_scope(principal, program.writable_by) else "another scope"
    name = program.path.rpartition("/")[2]
    raise PermissionDenied(
        f"{name} lies where {scope} can write, so its bytes could have been replaced there and it does not run here. "
        "Move the program out of that scope's folders, or take fs:write from that scope.",
        rule="programOfAnotherScope",
        program=name,
    )


def check_rules(policy: ScopePolicy) -> list[str]:
    """Problems with the scope's command rules: unreadable patterns, and examples that contradict their rule."""
    problems: list[str] = []
    listed: list[tuple[str, list[str | CommandRule]]] = [
        ("allowedCommands", policy.allowed_commands or []),
        ("deniedCommands", policy.denied_commands),
    ]
    for place, rules in listed:
        for index, entry in enumerate(rules):
            problems += [f"{place}[{index}]: {problem}" for problem in _problems_of(entry)]
    return problems


def diagnose_rules(policy: ScopePolicy, *, boundary_holds: bool) -> list[str]:
    """Return warnings about rules that only hold with a kernel boundary."""
    if boundary_holds and policy.sandbox != "off":
        return []
    wide = sorted({name for rule in _rules(policy.allowed_commands or []) if (name := _launcher_name(rule))})
    if not wide:
        return []
    return [
        f"allowedCommands lists {', '.join(wide)}: each can run any other program, and no kernel sandbox holds here, "
        "so the list does not limit what runs. Install bubblewrap or set sandbox to required."
    ]


@lru_cache(maxsize=1024)
def parse_rule(pattern: str) -> Rule:
    """Read a pattern. Raises InvalidRequest when it cannot be one."""
    words = pattern.split()
    if not words:
        raise InvalidRequest("A command pattern needs a program.")
    if len(words) == 1:
        return Rule(words[0], (), takes_rest=words[0] == "*")
    takes_rest = words[-1] == "*"
    return Rule(words[0], tuple(words[1:-1] if takes_rest else words[1:]), takes_rest)


def _rules(entries: list[str | CommandRule]) -> list[Rule]:
    return [parse_rule(_pattern(entry)) for entry in entries]


def _pattern(entry: str | CommandRule) -> str:
    return entry if isinstance(entry, str) else entry.pattern


def _allows(rule: Rule, words: Words, program: Program, locate: Locate, *, boundary_holds: bool) -> bool:
    if not rule.surely_fits(words[1:]):
        return False
    if rule.program == "*":
        return True
    if rule.names_a_path:
        return locate(rule.program) == program.path
    if program.is_writable_by_scope:
        # A bare name never means a file the scope could have put there, but for a project's own copy of that program,
        # inside a boundary, and only where no other scope could have put it there.
        is_own_copy = program.project_name == rule.program and program.also_writable_by is None
        return boundary_holds and is_own_copy
    return locate(rule.program) == program.path


def _denial(rule: Rule, words: Words, program: Program | None, locate: Locate) -> str | None:
    """Why the rule denies the command, as the end of a sentence; None when it does not."""
    if not words:
        return None
    name = name_of(words[0])
    if name.startswith("git-") and _denies(rule, ("git", name[4:], *words[1:]), None, locate):
        return ""
    if _denies(rule, words, program, locate):
        return ""
    is_of_git = rule.program_name == "git" and bool(rule.arguments) and not rule.arguments[0].startswith("-")
    if not is_of_git or not name or name.startswith("git-") or not _names(rule, words, program, locate):
        return None
    foreign = foreign_to_git(words[1:])
    return (
        None
        if foreign is None
        else f": {foreign} is not one of git's own commands, so it may be an alias of a denied one"
    )


def _denies(rule: Rule, words: Words, program: Program | None, locate: Locate) -> bool:
    return _names(rule, words, program, locate) and rule.could_fit(words[1:])


def _names(rule: Rule, words: Words, program: Program | None, locate: Locate) -> bool:
    """True when the rule's program is, or could be, the one that the command starts."""
    if rule.program == "*" or isinstance(words[0], Unknown):
        return True
    places = {place for place in (locate(words[0]), program and program.path, program and program.real) if place}
    if rule.names_a_path:
        return locate(rule.program) in places
    names = {PurePath(place).name.casefold() for place in (words[0], *places)}
    return rule.program.casefold() in names or locate(rule.program) in places


def _problems_of(entry: str | CommandRule) -> list[str]:
    pattern = _pattern(entry)
    try:
        rule = parse_rule(pattern)
    except InvalidRequest as error:
        return [error.message]
    problems = _pattern_problems(pattern)
    if isinstance(entry, CommandRule):
        for wanted, examples in ((True, entry.matches), (False, entry.not_matches)):
            for example in examples:
                problems += _example_problem(rule, pattern, example, wanted=wanted)
    return problems


def _pattern_problems(pattern: str) -> list[str]:
    found = sorted({char for char in pattern if char in "'\"`$;|&<>\\\n\t"})
    if found:
        return [f"the pattern {pattern!r} holds {' '.join(map(repr, found))}, which no plain argument needs"]
    return []


def _example_problem(rule: Rule, pattern: str, example: str, *, wanted: bool) -> list[str]:
    try:
        argv = to_argv(example)
    except LinkError as error:
        return [] if not wanted else [f"the example {example!r} is not a plain command: {error.message}"]
    fits = (rule.program in ("*", argv[0])) and rule.surely_fits(tuple(argv[1:]))
    if fits is wanted:
        return []
    return [f"the pattern {pattern!r} {'does not match' if wanted else 'matches'} the example {example!r}"]


def _launcher_name(rule: Rule) -> str | None:
    if rule.program == "*":
        return "*"
    name = PurePath(rule.program).name
    plain = re.sub(r"[\d.]+$", "", name)
    return name if name in LAUNCHES_ANYTHING or plain in LAUNCHES_ANYTHING else None


def _fits(glob: str, given: str) -> bool:
    if "*" not in glob:
        return glob == given
    # Each part at its first match, without backtracking: a caller chooses how long the text is.
    first, *middle, last = glob.split("*")
    if len(given) < len(first) + len(last) or not given.startswith(first) or not given.endswith(last):
        return False
    at, end = len(first), len(given) - len(last)
    for part in middle:
        at = given.find(part, at, end)
        if at < 0:
            return False
        at += len(part)
    return True

"""A yes that stands: which later requests it covers and until when.

It is bound to the caller's proven identity and to the name the client gave itself, to the scope, and to the scope's rules as
they were: another policy, another root or another client is asked anew.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal, get_args

from pydantic import Field

from computer_linker.approvals.request import Answer, ApprovalRequest, Preview
from computer_linker.audit.command_line import command_preview
from computer_linker.audit.redact import MAX_PREVIEW
from computer_linker.errors import InvalidRequest
from computer_linker.model.base import Model
from computer_linker.model.envelope import Call
from computer_linker.model.event import Approval, Way
from computer_linker.model.ids import new_handle
from computer_linker.model.principal import NO_SESSION, Principal, Proof
from computer_linker.model.scope import Scope
from computer_linker.policy.commands import LAUNCHES_ANYTHING
from computer_linker.policy.read_only import is_read_only
from computer_linker.policy.subcommands import behind_option, chooses_later, is_option, is_showing, only_shows
from computer_linker.policy.visible_text import escaped, principal_label

MINUTES = 60
"""How long a standing yes lasts where the owner names no time."""
_COMMAND_FIELDS = frozenset({"command", "script", "args", "source"})
_LIMITS = frozenset({"timeoutSeconds", "maxOutputBytes", "waitSeconds"})
_MAX_WORDS = 4
_MAX_TEXT = 400
"""A shape whose sentence is longer is not offered: its extent could not be read at a glance."""
_NOTHING = Preview(())
_DOES = {
    "file.write": "writes",
    "file.delete": "removes",
    "file.move": "moves",
    "file.copy": "copies",
    "file.mkdir": "makes",
}
_HAS_SUBCOMMANDS = frozenset("git npm pnpm yarn cargo go python node deno bun ruby php docker podman".split())
"""Programs that can start others, and whose first word names what they do."""
_RUNS_VALUE = {"python": ("-m", "-c"), "node": ("-e",), "ruby": ("-e",), "php": ("-r",)}
"""Options whose value is what an interpreter runs."""


class Standing(Model):
    """One standing yes, as the state folder keeps it."""

    id: str
    extent: Literal["same", "shape"]
    op: str
    scope: str
    policy: Annotated[str, Field(description="Identity of the scope's rules; other rules end it.")]
    principal: str
    client: str | None
    digest: Annotated[str | None, Field(description="Of the exact request and of what it was for; only of `same`.")] = (
        None
    )
    shown: Annotated[str, Field(description="The command line or the paths, without secrets; only of `same`.")] = ""
    words: Annotated[list[str], Field(description="The program and its first words.")] = []
    options: Annotated[list[str], Field(description="Further options that it covers.")] = []
    folder: Annotated[str | None, Field(description="It covers this path and what is below.")] = None
    kinds: Annotated[list[str], Field(description="What it covers may do only this.")] = []
    application: Annotated[str, Field(description="It covers acts on the windows of this application.")] = ""
    rest: str = ""
    by: str
    way: Way
    answer: Annotated[str, Field(description="The operation id of the answer's event.")]
    created_at: str
    expires_at: Annotated[str | None, Field(description="Null until it is revoked.")] = None

    @property
    def approval(self) -> Approval:
        """The answer as the events of the calls it covers keep it."""
        return Approval("yes", self.by, self.way, self.answer, self.extent)

    def is_over(self, now: datetime | None = None) -> bool:
        """True once its time is over."""
        return self.expires_at is not None and datetime.fromisoformat(self.expires_at) <= (now or datetime.now(UTC))

    def covers(self, asked: ApprovalRequest) -> bool:
        """Whether this yes is for such a request. One that could not be shown, or of a caller without a session, never is."""
        same_caller = (self.principal, self.client) == (asked.principal, asked.client)
        same_rules = (self.op, self.scope, self.policy) == (asked.op, asked.scope, asked.policy)
        if not _can_stand(asked) or self.is_over() or not same_caller or not same_rules:
            return False
        if self.extent == "same":
            return self.digest == exact_digest(asked)
        seen = asked.about or _NOTHING
        has_words = self._has_words(seen.argv) if self.words else not seen.argv
        is_below = (
            all(is_beneath(path, self.folder) for path in seen.paths) if self.folder is not None else not seen.paths
        )
        is_such = self.application == seen.application and seen.kinds <= set(self.kinds)
        return self.rest == asked.rest and has_words and is_below and is_such and has_shape(seen)

    def _has_words(self, argv: tuple[str, ...]) -> bool:
        size = len(self.words)
        return argv[:size] == tuple(self.words) and (len(argv) == size or self.covers_further(argv[size:]))

    def covers_further(self, further: Sequence[str]) -> bool:
        """Whether it covers a command with these further arguments.

        An option can make a program write elsewhere or start another one (`git log --output=FILE`): only those that the
        person saw are covered. A command that only reads stays one, with any options.
        """
        if self.is_whole:
            return False
        if self._only_reads:
            return is_read_only((*self.words, *further))
        program, verb = _program_of(self.words), self.words[-1]
        return all(word in self.options or not is_option(word) or only_shows(program, verb, word) for word in further)

    @property
    def _only_reads(self) -> bool:
        return bool(self.words) and is_read_only(tuple(self.words))

    @property
    def is_whole(self) -> bool:
        """True where it holds the whole command: a shell's line, or one where one more argument could start any program."""
        if len(self.words) == 1 and " " in self.words[0]:
            return True
        words = _of_module(self.words) or self.words
        program, at = _program_of(words), _first_word(words)
        if program in LAUNCHES_ANYTHING and (program not in _HAS_SUBCOMMANDS or at is None):
            return True
        return chooses_later(program, "" if at is None else words[at])

    @property
    def text(self) -> str:
        """What it covers, as a sentence for people."""
        who = f"by {self.client or principal_label(self.principal)} in scope {self.scope}"
        if self.extent == "same":
            what = f" `{escaped(self.shown)}`" if self.shown else ""
            return f"this exact {self.op}{what} again {who}, while what it is for stays as it is now"
        kind = "the command" if self.is_whole else "commands that begin with"
        what = f"{kind} `{escaped(' '.join(self.words))}`{self._further}" if self.words else f"every {self.op}"
        return f"{what}{f' ({self.op})' if self.words else ''}{self._does}{self._where} {who}"

    @property
    def _further(self) -> str:
        if self.is_whole:
            return ""
        if self._only_reads:
            return " and only read"
        but = [f"`{escaped(' '.join(self.options))}`"] if self.options else []
        if is_showing(_program_of(self.words), self.words[-1]):
            but.append("those that choose what it shows")
        return f" with no further options{' but ' if but else ''}{' and '.join(but)}"

    @property
    def _does(self) -> str:
        """What it may do to files, where its operation does not say so itself."""
        is_said = all(kind.startswith(_DOES.get(self.op, "?")) for kind in self.kinds)
        return "" if is_said else f" that only {' and '.join(self.kinds)}"

    @property
    def _where(self) -> str:
        if self.application:
            return f" on the windows of {escaped(self.application)}"
        if self.folder is None:
            return ""
        if self.folder == ".":
            return " in every folder"
        if self.words or self.folder.endswith("/"):
            return f" in {escaped(self.folder.rstrip('/'))} and below"
        return f" of {escaped(self.folder)} (or in it, were it a folder)"


def standing_of(
    asked: ApprovalRequest, extent: Literal["same", "shape"], minutes: int | None, by: Approval
) -> Standing:
    """The standing yes that this answer would make; `minutes` None is until it is revoked."""
    now = datetime.now(UTC)
    shape = extent == "shape"
    seen = asked.about or _NOTHING
    first = _first_words(seen.argv) if shape else ()
    return Standing(
        id=new_handle("standing"),
        extent=extent,
        op=asked.op,
        scope=asked.scope,
        policy=asked.policy,
        principal=asked.principal,
        client=asked.client,
        digest=None if shape else exact_digest(asked),
        shown="" if shape else command_preview(seen.argv) if seen.argv else " ".join(seen.paths)[:MAX_PREVIEW],
        words=list(first),
        options=list(dict.fromkeys(filter(is_option, seen.argv[len(first) :]))) if shape else [],
        folder=_common_folder(seen.paths, is_command=bool(seen.argv)) if shape and seen.paths else None,
        kinds=sorted(seen.kinds) if shape else [],
        application=seen.application if shape else "",
        rest=asked.rest if shape else "",
        by=by.by,
        way=by.way,
        answer=by.answer,
        created_at=_stamp(now),
        expires_at=None if minutes is None else _stamp(now + timedelta(minutes=minutes)),
    )


def extents_of(asked: ApprovalRequest) -> tuple[Literal["same", "shape"], ...]:
    """The standing answers that this request can get.

    None where it or the content it writes could not be shown, of a batch, whose steps can stand by themselves, or for callers
    without a session, who share one credential: it would hold for all of them.
    """
    if not _can_stand(asked) or (asked.about is not None and asked.about.steps):
        return ()
    if asked.about is None or not has_shape(asked.about):
        return ("same",)
    shape = standing_of(asked, "shape", MINUTES, Approval("yes", "", "terminal", ""))
    return ("same", "shape") if len(shape.text) <= _MAX_TEXT else ("same",)


def check_extent(asked: ApprovalRequest, answer: Answer) -> None:
    """Raise InvalidRequest for an answer that this request cannot get."""
    if answer in ("same", "shape") and answer not in (offered := extents_of(asked)):
        how = "once, or this exact request again," if offered else "once"
        raise InvalidRequest(f"{asked.op} of this caller can be allowed {how} only.")


def exact_digest(asked: ApprovalRequest) -> str:
    """Digest of the exact request together with everything that a yes to it is held to."""
    return _digest([asked.digest, sorted(asked.holds.items())])


def rest_of(call: Call, argv: Sequence[str]) -> str:
    """Digest of what else requests of one shape share: a command's environment and input, and every option but limits."""
    given = call.input if argv and type(call.input) is dict else {}
    options = call.options if type(call.options) is dict else {}
    kept = {name: value for name, value in given.items() if name not in _COMMAND_FIELDS}
    return _digest([kept, {name: value for name, value in options.items() if name not in _LIMITS}])


def policy_of(scope: Scope, who: Principal) -> str:
    """The identity of a scope's rules (its roots, capabilities and policy) and of how the caller proved itself."""
    return _digest([scope.model_dump(mode="json"), who.proof, who.is_forwarded])


def is_in_force(one: Standing, scope: Scope | None) -> bool:
    """Whether the scope's rules are those that the yes was given under, for any caller of its kind."""
    if scope is None:
        return False
    rules = scope.model_dump(mode="json")
    return any(
        one.policy == _digest([rules, proof, forwarded]) for proof in get_args(Proof) for forwarded in (False, True)
    )


def is_beneath(path: str, folder: str | None) -> bool:
    """Whether a path is this one or lies below it; with a slash at its end a folder is only what lies below.

    `.` is the scope's first root alone; another root has a name of its own.
    """
    if folder == ".":
        return not path.startswith(("@", "/")) and ":" not in path
    return folder is not None and (path == folder or path.startswith(folder.rstrip("/") + "/"))


def has_shape(seen: Preview) -> bool:
    """Whether there is something that requests like this one have in common."""
    return not seen.links and bool(seen.argv or seen.paths or seen.application)


def _can_stand(asked: ApprovalRequest) -> bool:
    is_once = asked.about is not None and asked.about.is_once
    return asked.session != NO_SESSION and asked.can_be_allowed and not is_once


def _first_words(argv: Sequence[str]) -> Sequence[str]:
    """The program, its options and its first word: `git commit`, `git -C sub log`, `rm -rf build`, `python -c CODE`.

    Of a program whose later arguments choose what is done or started, such as env, `npm run` or make, all arguments.
    """
    program = _program_of(argv)
    if module := _of_module(argv):
        return [*argv[: -len(module)], *_first_words(module)]
    if program in LAUNCHES_ANYTHING and program not in _HAS_SUBCOMMANDS:
        return argv
    at = _first_word(argv)
    is_whole = at is None or at >= _MAX_WORDS or chooses_later(program, argv[at])
    return argv if is_whole or at is None else argv[: at + 1]


def _of_module(argv: Sequence[str]) -> Sequence[str]:
    """The module that `python -m` runs, with its own arguments: `pip list`; empty where it runs none."""
    at = next((at for at, word in enumerate(argv) if at and (word == "-m" or not word.startswith("-"))), 0)
    return argv[at + 1 :] if _program_of(argv) in ("python", "pypy") and at and argv[at] == "-m" else ()


def _first_word(argv: Sequence[str]) -> int | None:
    """The place of the first word that is certainly no option's value; None where there may be none."""
    program, reached, found = _program_of(argv), {1}, 0
    runs = _RUNS_VALUE.get(program, ())
    for at, word in enumerate(argv):
        if at not in reached:
            continue
        if word in runs and at + 1 < len(argv):
            found = max(found, at + 1)
            continue
        after = list(behind_option(program, word, is_first=True))
        reached |= {at + 2 if has_value else at + 1 for has_value in after}
        found = found if after else max(found, at)
    return found if found and max(reached) < len(argv) else None


def _program_of(argv: Sequence[str]) -> str:
    """The program's name without a folder and a version: `python` for `/usr/bin/python3.11`."""
    name = argv[0].rpartition("/")[2] if argv else ""
    return re.sub(r"[\d.]+$", "", name) or name


def _common_folder(paths: Sequence[str], *, is_command: bool) -> str:
    """The folder of the paths: of a command its own, of changes the nearest that has them all; one path at the top is its own.

    Changes in a folder are not changes of the folder itself, so it ends in a slash.
    """
    if is_command or (len(paths) == 1 and "/" not in paths[0]):
        return paths[0]
    folders = [path.rpartition("/")[0] or "." for path in paths]
    common = folders[0]
    while common != "." and not all(is_beneath(folder, common) for folder in folders):
        common = common.rpartition("/")[0] or "."
    return common if common == "." else f"{common}/"


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


def _stamp(when: datetime) -> str:
    return when.isoformat(timespec="seconds")

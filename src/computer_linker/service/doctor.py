"""What is ready, what blocks, and what would help: the one source of `status`, `doctor` and get_computer_info's status."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from computer_linker import __version__
from computer_linker.auth.owner_token import shown
from computer_linker.config.defaults import EXECUTES
from computer_linker.config.diagnose import REFUSED, Finding, diagnose, is_loopback
from computer_linker.config.load import BY_HAND, CONFIG_NAME, CORRECT, load, read_document, read_file, with_identity
from computer_linker.config.mend import mended
from computer_linker.config.private import not_set_up
from computer_linker.config.repair import repaired, tighten
from computer_linker.config.schema import Config
from computer_linker.config.store import exists, last_good
from computer_linker.dispatch.pause import is_desktop_halted, pause_in_force
from computer_linker.errors import ConfigInvalid
from computer_linker.model.base import Model
from computer_linker.model.times import local, shown_s
from computer_linker.policy.commands import diagnose_rules
from computer_linker.service.changing_config import change_recorded, replace_recorded
from computer_linker.service.programs import Tool, tool_readiness
from computer_linker.service.scopes import more_than_a_project
from computer_linker.service.settings import check

_SECURITY = frozenset(
    (
        "state_readable", "no_owner_token", "tunnel_without_token", "not_loopback", "public_url_not_https", "root_contains_state",
        "root_is_home", "root_is_private", "root_writable_by_all", "no_command_policy", "sandbox_off", "unasked",
    )
)  # fmt: skip
ReleaseState = Literal["ready", "needs_attention", "blocked"]
_PAUSED = "clients_paused"


class Readiness(Model):
    """Ready or not, and why not."""

    ready: bool
    blocking_reasons: list[str]
    warnings: list[str]


class Status(Readiness):
    """The short answer, with what to do next."""

    owner_token: Annotated[str, Field(description="How it is kept, never the token.")]
    next_actions: list[str]


class ReleaseCheck(Model):
    name: str
    passed: bool
    wants: str
    blocks: bool


class ReleaseReadiness(Model):
    """Whether a release could go out from here."""

    status: ReleaseState
    checks: list[ReleaseCheck]


class Diagnosis(Model):
    """Everything that was looked at. Without a config only what does not depend on it."""

    version: str
    status: Readiness
    config: list[Finding]
    security: list[Finding]
    tools: dict[str, Tool]
    release_readiness: ReleaseReadiness
    next_actions: list[str]

    @property
    def findings(self) -> list[Finding]:
        return [*self.security, *self.config]


def diagnosis(
    config: Config | None, home: Path, refusal: ConfigInvalid | None = None, bound: str | None = None
) -> Diagnosis:
    """Look at everything. Costs a few stats, and the programs' versions the first time.

    `refusal` is why there is no config, `bound` the address that a running service listens on.
    """
    findings = _findings(config, home, refusal, bound)
    tools = tool_readiness(config.scopes if config is not None else ())
    return Diagnosis(
        version=__version__,
        status=_readiness(findings),
        config=[finding for finding in findings if finding.code not in _SECURITY],
        security=[finding for finding in findings if finding.code in _SECURITY],
        tools=tools,
        release_readiness=_release_readiness(config, findings, tools),
        next_actions=next_actions(findings),
    )


def security_findings(config: Config, home: Path) -> list[Finding]:
    """What of the diagnosis speaks against exposing this computer. Costs a few stats."""
    return [finding for finding in _findings(config, home, None, None) if finding.code in _SECURITY]


def _findings(config: Config | None, home: Path, refusal: ConfigInvalid | None, bound: str | None) -> list[Finding]:
    findings = [*stops(home), *(_refused(home, refusal) if refusal is not None else ()), *_bound_wide(config, bound)]
    if config is not None:
        # Each problem of a refused file is named above already.
        named = () if refusal is None else (REFUSED,)
        findings += [found for found in _looked_at(config, home) if found.code not in named]
        findings += [*_wide_rules(config), *(_still_in_force(config) if refusal is not None else ())]
    return findings


def status_of(config: Config, home: Path, *, serving_http: bool, bound: str | None = None) -> Status:
    """The short answer: ready or not, why, and what is worth a look. Costs a few stats."""
    findings = [*stops(home), *_bound_wide(config, bound), *_looked_at(config, home)]
    if not serving_http:
        # A token guards HTTP alone: a service that listens on its private socket only is not exposed without one.
        findings = [finding for finding in findings if finding.code not in ("no_owner_token", "not_loopback")]
    short = _readiness(findings)
    return Status(
        ready=short.ready,
        blocking_reasons=short.blocking_reasons,
        warnings=short.warnings,
        owner_token=shown(config.owner_token),
        next_actions=next_actions(findings),
    )


def _bound_wide(config: Config | None, bound: str | None) -> Iterator[Finding]:
    """An address that `--host` gave this run alone; that of the config is looked at with the rest."""
    if bound is None or is_loopback(bound) or (config is not None and not is_loopback(config.host)):
        return
    yield Finding(
        severity="warning",
        code="not_loopback",
        message=f"This run of the service listens on {bound}; other machines can reach it with the token.",
        remedy="Run: computer-linker stop, and start it without --host, unless you mean it",
    )


def _looked_at(config: Config, home: Path) -> list[Finding]:
    return [*diagnose(config, home), *_wide_roots(config)]


def _wide_roots(config: Config) -> Iterator[Finding]:
    """Folders that hold more than a project, which are warned of before they are exposed too."""
    for scope in config.scopes:
        for root in scope.roots:
            why = more_than_a_project(root)
            if why is not None:
                yield Finding(
                    severity="warning",
                    code="root_is_home" if why.startswith("is ") else "root_is_private",
                    message=f"Scope {scope.id}: {root} {why}",
                    remedy=f"Run: computer-linker scope edit {scope.id} --root FOLDER, with a narrower folder",
                    scope=scope.id,
                )


def stops(home: Path) -> Iterator[Finding]:
    """What the owner has stopped: every client by `pause`, the desktop by `halt`."""
    pausing = pause_in_force(home)
    if pausing is not None:
        end = "you run: computer-linker unpause" if pausing.until is None else local(shown_s(pausing.until))
        yield Finding(
            severity="error",
            code=_PAUSED,
            message=f"Clients are paused until {end}.",
            remedy="Run: computer-linker unpause",
        )
    if is_desktop_halted(home):
        sentence = "The desktop is halted: no client acts on it until you run: computer-linker resume."
        yield Finding(severity="warning", code="desktop_halted", message=sentence, remedy="Run: computer-linker resume")


def next_actions(findings: Iterable[Finding]) -> list[str]:
    """Return what to do, the most important first, each once."""
    return list(dict.fromkeys(finding.remedy for finding in findings if finding.severity != "info"))


def _refused(home: Path, refusal: ConfigInvalid) -> Iterator[Finding]:
    """One error for each problem of a config that is refused."""

    fixable = can_repair(home, refusal)
    by_hand = BY_HAND if refusal.hint == CORRECT else refusal.hint
    remedy = "Run: computer-linker doctor --fix" if fixable else f"{by_hand[:1].upper()}{by_hand[1:]}"
    for sentence in [str(problem) for problem in refusal.problems] or [refusal.message]:
        yield Finding(severity="error", code="config_invalid", message=sentence, remedy=remedy, fixable=fixable)


def _still_in_force(config: Config) -> Iterator[Finding]:
    closed = ", ".join(scope.id for scope in config.scopes if scope.is_closed)
    sentence = "Until the file is valid, what was valid before and is unchanged stays in force" + (
        f"; closed until fixed: {closed}." if closed else "."
    )
    yield Finding(severity="info", code=REFUSED, message=sentence, remedy="")


def _readiness(findings: list[Finding]) -> Readiness:
    blocking = [finding.message for finding in findings if finding.severity == "error"]
    warnings = [finding.message for finding in findings if finding.severity == "warning"]
    return Readiness(ready=not blocking, blocking_reasons=blocking, warnings=warnings)


def _wide_rules(config: Config) -> Iterator[Finding]:
    """Allow lists that limit nothing, because the scope has switched the boundary off."""
    for scope in config.scopes:
        for sentence in diagnose_rules(scope.policy, boundary_holds=True):
            message, _, remedy = sentence.partition(". ")
            yield Finding(
                severity="warning",
                code="wide_commands",
                message=f"Scope {scope.id}: {message}.",
                remedy=remedy or f"Run: computer-linker scope edit {scope.id} --policy sandbox=required",
                scope=scope.id,
            )


def _release_readiness(config: Config | None, findings: list[Finding], tools: dict[str, Tool]) -> ReleaseReadiness:
    def has(severity: str, *, security: bool) -> bool:
        return any(
            found.severity == severity and (found.code in _SECURITY) == security
            for found in findings
            if found.code != _PAUSED
        )

    missing = [name for name, tool in tools.items() if tool.need == "recommended" and not tool.available]
    checks = [
        _check("runtime", sys.version_info >= (3, 11), "Python 3.11 or later", blocks=True),
        _check("config", not has("error", security=False), "no config errors", blocks=True),
        _check("security", not has("error", security=True), "no security errors", blocks=True),
        _check("securityWarnings", not has("warning", security=True), "no security warnings"),
        _check("configWarnings", not has("warning", security=False), "no config warnings"),
        _check("tools", not missing, "the recommended programs are there"),
        _check("scopes", config is not None and bool(config.scopes), "at least one scope", blocks=True),
        _check("commandPolicy", _commands_are_listed(config), "every scope that runs programs lists them"),
        _check("exposure", _exposure_is_safe(config), "nothing beyond this machine without a token", blocks=True),
    ]
    failed = [check for check in checks if not check.passed]
    status: ReleaseState = "needs_attention" if failed else "ready"
    return ReleaseReadiness(status="blocked" if any(check.blocks for check in failed) else status, checks=checks)


def _check(name: str, passed: bool, wants: str, *, blocks: bool = False) -> ReleaseCheck:
    return ReleaseCheck(name=name, passed=passed, wants=wants, blocks=blocks)


def _exposure_is_safe(config: Config | None) -> bool:
    if config is None or config.owner_token is not None:
        return True
    asked = config.public_base_url is not None or config.tunnel.provider is not None
    return is_loopback(config.host) and not asked


def _commands_are_listed(config: Config | None) -> bool:
    return config is None or all(
        scope.policy.allowed_commands is not None for scope in config.scopes if EXECUTES & set(scope.capabilities)
    )


# `doctor --fix`: every repair that has one right answer, kept for an undo.


def repair(home: Path, operation_id: str) -> list[str]:
    """Make the repairs; one sentence each. Raises ConfigInvalid with the problems that are left, having changed no content."""
    if not exists(home):
        raise not_set_up()
    done = tighten(home)
    try:
        load(home, check)
    except ConfigInvalid as error:
        if not error.problems:
            raise
        return [*done, *_mend(home, operation_id, error)]
    if repaired(with_identity(dict(read_document(home).value), home)):
        change_recorded(home, operation_id, lambda document: done.extend(repaired(document)))
        done.append(_put_back(operation_id))
    return done


def can_repair(home: Path, refusal: ConfigInvalid) -> bool:
    """Whether `repair` would make a config.json valid that is refused for this reason. Changes nothing."""
    try:
        if not refusal.problems:
            return bool(tighten(home, dry_run=True))
        raw, _ = read_file(home)
    except (ConfigInvalid, OSError):
        return False
    return not mended(raw, last_good(home), home, check).left


def _mend(home: Path, operation_id: str, why: ConfigInvalid) -> list[str]:
    raw, _ = read_file(home)
    made = mended(raw, last_good(home), home, check)
    if made.left:
        raise ConfigInvalid.of(made.left if made.done else why.problems, BY_HAND)
    also = repaired(made.value)
    replace_recorded(home, operation_id, raw, made.value)
    return [*made.done, *also, _put_back(operation_id)]


def _put_back(operation_id: str) -> str:
    return f"{CONFIG_NAME} as it was can be put back: computer-linker undo {operation_id} --yes"

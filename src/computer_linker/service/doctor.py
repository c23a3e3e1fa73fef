"""What is ready, what blocks, and what would help: the one source of `status`, `doctor` and get_computer_info's status."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from computer_linker import __version__
from computer_linker.auth.owner_token import shown
from computer_linker.computer.base import Computer
from computer_linker.config.defaults import EXECUTES
from computer_linker.config.diagnose import Finding, diagnose, is_loopback
from computer_linker.config.schema import Config
from computer_linker.dispatch.pause import is_desktop_halted, pause_in_force
from computer_linker.model.times import shown_s
from computer_linker.policy.commands import diagnose_rules
from computer_linker.service.programs import tool_readiness

__all__ = [
    "Diagnostics", "diagnostics", "facet_states", "next_actions", "readiness", "screenshot_readiness", "tool_readiness",
]  # fmt: skip

_SECURITY = frozenset(
    (
        "state_readable", "no_owner_token", "tunnel_without_token", "not_loopback", "public_url_not_https", "root_contains_state",
        "root_writable_by_all", "no_command_policy", "sandbox_off",
    )
)  # fmt: skip
ReleaseState = Literal["ready", "needs_attention", "blocked"]
_PAUSED = "clients_paused"


@dataclass(frozen=True)
class Diagnostics:
    """The result of `doctor`, ready to be shown or sent."""

    config: Config
    findings: list[Finding]
    tools: dict[str, Any]

    @property
    def blocking(self) -> list[str]:
        return [finding.message for finding in self.findings if finding.severity == "error"]

    @property
    def warnings(self) -> list[str]:
        return [finding.message for finding in self.findings if finding.severity == "warning"]

    def to_wire(self) -> dict[str, Any]:
        return {
            "version": __version__,
            "status": {"ready": not self.blocking, "blockingReasons": self.blocking, "warnings": self.warnings},
            "config": [finding.to_wire() for finding in self.findings if finding.code not in _SECURITY],
            "security": [finding.to_wire() for finding in self.findings if finding.code in _SECURITY],
            "tools": self.tools,
            "releaseReadiness": self.release_readiness(),
            "nextActions": next_actions(self.findings),
        }

    def release_readiness(self) -> dict[str, Any]:
        """Whether a release could go out from here: blocked, needs attention, or ready, with every check."""
        checks = [
            _check("runtime", sys.version_info >= (3, 11), "Python 3.11 or later", blocks=True),
            _check("config", not self._has("error", security=False), "no config errors", blocks=True),
            _check("security", not self._has("error", security=True), "no security errors", blocks=True),
            _check("securityWarnings", not self._has("warning", security=True), "no security warnings"),
            _check("configWarnings", not self._has("warning", security=False), "no config warnings"),
            _check("tools", not self._missing("recommended"), "the recommended programs are there"),
            _check("scopes", bool(self.config.scopes), "at least one scope", blocks=True),
            _check("commandPolicy", _commands_are_listed(self.config), "every scope that runs programs lists them"),
            _check("exposure", self._exposure_is_safe(), "nothing beyond this machine without a token", blocks=True),
        ]
        return {"status": _overall(checks), "checks": checks}

    def _has(self, severity: str, *, security: bool) -> bool:
        return any(
            found.severity == severity and (found.code in _SECURITY) == security
            for found in self.findings
            if found.code != _PAUSED
        )

    def _missing(self, need: str) -> list[str]:
        return [name for name, tool in self.tools.items() if tool["need"] == need and not tool["available"]]

    def _exposure_is_safe(self) -> bool:
        asked = self.config.public_base_url is not None or self.config.tunnel.provider is not None
        private = is_loopback(self.config.host) and not asked
        return private or self.config.owner_token is not None


def diagnostics(config: Config, home: Path) -> Diagnostics:
    """Look at everything. Costs a few stats, and the programs' versions the first time."""
    return Diagnostics(
        config, [*stops(home), *diagnose(config, home), *_wide_rules(config)], tool_readiness(config.scopes)
    )


def stops(home: Path) -> Iterator[Finding]:
    """What the owner has stopped: every client by `pause`, the desktop by `halt`."""
    pausing = pause_in_force(home)
    if pausing is not None:
        end = "you run: computer-linker unpause" if pausing.until is None else shown_s(pausing.until)
        yield Finding("error", _PAUSED, f"Clients are paused until {end}.", "Run: computer-linker unpause")
    if is_desktop_halted(home):
        sentence = "The desktop is halted: no client acts on it until you run: computer-linker resume."
        yield Finding("warning", "desktop_halted", sentence, "Run: computer-linker resume")


def _wide_rules(config: Config) -> Iterator[Finding]:
    """Allow lists that limit nothing, because the scope has switched the boundary off."""
    for scope in config.scopes:
        for sentence in diagnose_rules(scope.policy, boundary_holds=True):
            message, _, remedy = sentence.partition(". ")
            yield Finding(
                "warning", "wide_commands", f"Scope {scope.id}: {message}.", remedy or "Set sandbox to required."
            )


def readiness(config: Config, home: Path, *, serving_http: bool) -> dict[str, Any]:
    """The short answer: ready or not, why, and what is worth a look. Costs a few stats."""
    findings = [*stops(home), *diagnose(config, home)]
    if not serving_http:
        # A token guards HTTP alone: a service that listens on its private socket only is not exposed without one.
        findings = [finding for finding in findings if finding.code not in ("no_owner_token", "not_loopback")]
    blocking = [finding.message for finding in findings if finding.severity == "error"]
    warnings = [finding.message for finding in findings if finding.severity == "warning"]
    return {
        "ready": not blocking,
        "blockingReasons": blocking,
        "warnings": warnings,
        "ownerToken": shown(config.owner_token),
        "nextActions": next_actions(findings),
    }


def facet_states(computer: Computer) -> dict[str, Any]:
    """Each group of the computer's abilities: present, blocked or missing, why, and what would help."""
    return {name: state.to_wire() for name, state in computer.capabilities().facets.items()}


def screenshot_readiness(computer: Computer) -> dict[str, Any]:
    """Whether the screen can be captured here, found out without capturing anything."""
    state = computer.capabilities().facets["screen"]
    available = state.state == "present"
    return {
        "available": available,
        "path": None,
        "version": None,
        "need": "optional",
        "purpose": "screen.* operations",
        "modes": ["display", "window", "process"] if available else [],
        "backend": state.backend or None,
        "isProven": state.is_proven,
        # The system's permission is not queried here; screen.list queries and reports it.
        "permission": {"status": {"present": "not_checked", "blocked": "required"}.get(state.state, "unavailable")},
        "remedy": None if available else (f"{state.reason} {state.remedy}".strip() or None),
    }


def next_actions(findings: list[Finding]) -> list[str]:
    """Return what to do, the most important first, each once."""
    return list(dict.fromkeys(finding.remedy for finding in findings if finding.severity != "info"))


def _check(name: str, passed: bool, wants: str, *, blocks: bool = False) -> dict[str, Any]:
    return {"name": name, "passed": passed, "wants": wants, "blocks": blocks}


def _overall(checks: list[dict[str, Any]]) -> ReleaseState:
    failed = [check for check in checks if not check["passed"]]
    if any(check["blocks"] for check in failed):
        return "blocked"
    return "needs_attention" if failed else "ready"


def _commands_are_listed(config: Config) -> bool:
    return all(
        scope.policy.allowed_commands is not None for scope in config.scopes if EXECUTES & set(scope.capabilities)
    )

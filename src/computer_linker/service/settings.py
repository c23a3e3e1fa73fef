"""The live config with all checks of this service, command rules included."""

from pathlib import Path

from computer_linker.config.live import LiveConfig
from computer_linker.config.schema import Config


def live_config(home: Path) -> LiveConfig:
    """The live config of this state folder; rules that contradict their own examples are refused too."""
    return LiveConfig(home, check=check)


def check(config: Config) -> list[str]:
    """Return the problems of the command rules, one sentence each, naming the scope."""
    from computer_linker.policy.commands import check_rules

    return [f"scope {scope.id}: {problem}" for scope in config.scopes for problem in check_rules(scope.policy)]

"""The live config with all checks of this service, command rules included."""

from pathlib import Path

from computer_linker.config.live import LiveConfig
from computer_linker.config.schema import Config


def live_config(home: Path) -> LiveConfig:
    """The live config of this state folder; rules that contradict their own examples are refused too."""
    return LiveConfig(home, check=check)


def exposed_config(home: Path) -> LiveConfig:
    """The live config as the running service sees it, with the address of the tunnel it has open."""
    live = live_config(home)
    if (home / "tunnels.json").exists():
        from computer_linker.tunnels.record import read

        record = read(home)
        live.expose(record.public_url if record is not None and record.is_open else None)
    return live


def check(config: Config) -> list[str]:
    """Return the problems of the command rules, one sentence each, naming the scope."""
    from computer_linker.policy.commands import check_rules

    return [f"scope {scope.id}: {problem}" for scope in config.scopes for problem in check_rules(scope.policy)]

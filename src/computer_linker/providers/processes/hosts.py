"""Lists of hosts for commands: the gates, and what is refused or said where no boundary can hold a list."""

from typing import TYPE_CHECKING

from computer_linker.errors import ProviderUnavailable
from computer_linker.model.scope import ScopePolicy
from computer_linker.providers.sandbox.boundary import Boundary
from computer_linker.services import Services

if TYPE_CHECKING:
    from computer_linker.providers.network.gates import Gates


def gates_of(services: Services) -> "Gates":
    """The gates, loaded with the first command that needs one."""
    from computer_linker.providers.network.gates import Gates

    return services.use(Gates)


def judge_hosts(policy: ScopePolicy, boundary: Boundary, *, lists_hosts: bool) -> None:
    """Refuse a command of a scope that requires its boundary, where that cannot hold a list of hosts."""
    if lists_hosts and policy.sandbox == "required" and boundary.kind != "bubblewrap":
        raise ProviderUnavailable(
            "This scope lets programs reach only the hosts of its `network` list, which needs bubblewrap here.",
            reason="sandbox",
            remedy="Install bubblewrap, or set the scope's `network` to false.",
        )


def network_warnings(policy: ScopePolicy, boundary: Boundary, *, lists_hosts: bool) -> list[str]:
    """What of the scope's network the boundary does not hold, or cannot give."""
    if not boundary.holds and policy.network is not True:
        named = "The `network` list" if policy.network else "network: false"
        return [f"{named} is not enforced without a kernel boundary."]
    if boundary.holds and lists_hosts and boundary.kind != "bubblewrap":
        return [
            f"{boundary.kind} cannot hold a list of hosts, so the command had no network at all. Installing bubblewrap helps."
        ]
    return []

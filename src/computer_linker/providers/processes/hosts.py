"""Lists of hosts for commands: the gates, and what is refused or said where no boundary can hold a list."""

from typing import TYPE_CHECKING

from computer_linker.errors import ProviderUnavailable
from computer_linker.model.scope import Scope, ScopePolicy
from computer_linker.policy.engine import FolderAccess
from computer_linker.providers.sandbox.boundary import Boundary
from computer_linker.services import Services

if TYPE_CHECKING:
    from computer_linker.providers.network.gates import Gates
    from computer_linker.providers.processes.elevation import Elevation
    from computer_linker.providers.processes.prepare import CommandRequest


def gates_of(services: Services) -> "Gates":
    """The gates, loaded with the first command that needs one."""
    from computer_linker.providers.network.gates import Gates

    return services.use(Gates)


def elevation_of(services: Services, request: "CommandRequest", env: dict[str, str]) -> "Elevation":
    """What passes `sudo` of a command on to the owner; its environment finds it first."""
    from computer_linker.providers.processes.elevation import BIN, Elevation

    env["PATH"] = f"{BIN}:{env['PATH']}"
    return Elevation(services, request)


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


def boundary_warnings(scope: Scope, boundary: Boundary, access: FolderAccess, *, lists_hosts: bool) -> list[str]:
    """What no boundary held, and what of the scope's folders the command could not have."""
    warnings: list[str] = []
    if not boundary.holds:
        why = "the scope's policy turns the sandbox off" if scope.policy.sandbox == "off" else boundary.detail
        warnings.append(f"No kernel boundary held around this command: {why}. It could reach all your files.")
    warnings += network_warnings(scope.policy, boundary, lists_hosts=lists_hosts)
    if boundary.holds and access == "read-only":
        warnings.append("The scope or this caller lacks fs:write, so the command saw the scope's folders read-only.")
    elif boundary.holds and access == "hidden":
        warnings.append("The scope or this caller lacks fs:read, so the command saw none of the scope's folders.")
    return warnings

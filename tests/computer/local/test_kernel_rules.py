"""What a command may not call: decided by what else separates it from the machine."""

import sys

import pytest

from computer_linker.computer.facets.processes import KernelRules

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="seccomp and Landlock are Linux's")


@pytest.mark.parametrize(
    ("has_network", "abi", "has_sockets"), [(True, 5, False), (True, 6, True), (False, 5, True), (False, 0, True)]
)
def test_with_network_and_without_scopes_of_landlock_there_are_no_unix_sockets(
    has_network: bool, abi: int, has_sockets: bool
) -> None:
    """Before Linux 6.12 nothing else keeps a command from abstract sockets of the session and of other commands."""
    from computer_linker.computer.local.linux.kernel_rules import program_filter
    from computer_linker.computer.local.linux.syscall_filters import namespace_filter

    rules = KernelRules(confine_signals=True, confine_namespaces=True, confine_sockets=not has_network)
    wanted = namespace_filter(namespaces=False, unix_sockets=has_sockets, other_sockets=has_network)
    assert program_filter(rules, abi) == wanted

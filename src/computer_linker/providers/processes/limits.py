"""What a scope's policy says a command may use."""

from computer_linker.computer.facets.processes import ProcessLimits
from computer_linker.model.scope import ScopePolicy


def limits_of(policy: ScopePolicy) -> ProcessLimits:
    """The limits of one command; what the policy does not name is the launcher's default."""
    return ProcessLimits(
        processes=policy.max_processes,
        memory_bytes=None if policy.max_memory_mb is None else policy.max_memory_mb << 20,
        file_bytes=policy.max_file_mb << 20,
    )

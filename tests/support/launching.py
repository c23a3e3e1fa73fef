"""The launcher's children that wait for an order."""

from computer_linker.computer.base import Computer
from computer_linker.computer.local.linux.processes import LinuxProcesses
from support.waiting import until


def processes_of(computer: Computer) -> LinuxProcesses:
    """The processes of a computer that is this one."""
    processes = computer.processes
    assert isinstance(processes, LinuxProcesses)
    return processes


async def waiting_child(processes: LinuxProcesses) -> int:
    """The number of the child that takes the next order, once there is one."""
    await until(lambda: processes._ready)
    return processes._ready[0].pid

"""The hosts that the programs of a view connected to."""

from computer_linker.providers.views.store import View


async def hosts_of(view: View) -> list[str]:
    """The hosts of the connections that the operations in `view.operations` made; none are recorded yet."""
    return []

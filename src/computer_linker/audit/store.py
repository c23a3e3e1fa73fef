"""AuditStore: the history the dispatcher writes to."""

from pathlib import Path
from typing import Protocol, Self

from computer_linker.audit import record
from computer_linker.audit.durable import GroupSync
from computer_linker.audit.faults import AuditDamaged, unwritable
from computer_linker.audit.journal import Journal
from computer_linker.model.event import Event


class Home(Protocol):
    """What the store needs of the service: the state folder."""

    home: Path


class AuditStore:
    """Writes events to the journal. An append is a short write and happens at once, on the loop's thread."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.running: set[str] = set()
        """Operations whose intent is written and whose outcome is still to come, in this process."""
        try:
            self.journal = Journal(folder)
        except OSError as error:
            raise AuditDamaged(
                f"The history in {folder} cannot be opened: {error.strerror or error}.",
                hint="The state folder must be writable by the user who runs the service, with space left.",
            ) from error
        self._durable = GroupSync(self.journal.sync)

    @classmethod
    def open(cls, services: Home) -> Self:
        """The history of this state folder. Raises AuditDamaged when it is not what this service wrote."""
        return cls(services.home / "audit")

    async def intent(self, event: Event) -> None:
        """Record what is about to happen; on return it survives a power cut."""
        self.journal.append([record.opening(event, "intent", self.journal.key)])
        self.running.add(event.operation_id)
        try:
            await self._durable.done()
        except OSError as error:
            raise unwritable(error) from error

    async def outcome(self, event: Event) -> None:
        """Join the outcome to the intent of the same operation."""
        self.running.discard(event.operation_id)
        self.journal.append([record.outcome(event, self.journal.key)])

    async def record(self, event: Event) -> None:
        """Record an operation without side effects, or a refusal, whole."""
        self.journal.append([record.opening(event, "record", self.journal.key)])

    async def aclose(self) -> None:
        """Make the last records durable and let go of the files."""
        self._durable.close()
        self.journal.close()

"""Questions and acts of the view: owner's operations by name, over the private socket."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from computer_linker.client.socket_client import ServiceUnreachable, ask_or_start, ask_service


class Refused(Exception):
    """The service refused, or none answers; the message is for the status line.

    `again` is what the owner may add to the request to mean it nevertheless; None where nothing helps.
    """

    def __init__(self, message: str, question: str = "", again: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.question, self.again = question, again


@dataclass(frozen=True, slots=True)
class Link:
    """The service of one state folder. Every call is a short connection of its own, in the caller's thread."""

    home: Path

    def ask(self, operation: str, /, **given: Any) -> dict[str, Any]:
        """The result of an owner's operation. Raises Refused."""
        return _data(self._sent(operation, given, start=False))

    def begin(self, operation: str, /, **given: Any) -> dict[str, Any]:
        """The same, from a service that is started when none runs."""
        return _data(self._sent(operation, given, start=True))

    def _sent(self, operation: str, given: dict[str, Any], *, start: bool) -> dict[str, Any]:
        request = {"owner": operation, "input": given}
        try:
            answer = ask_or_start(self.home, request) if start else ask_service(self.home, request)
        except (ServiceUnreachable, OSError) as error:
            raise Refused(str(error)) from error
        if answer is None:
            raise Refused("no service runs")
        return answer


def _data(answer: dict[str, Any]) -> dict[str, Any]:
    if answer.get("ok"):
        data: dict[str, Any] = answer["data"]
        return data
    error = answer.get("error")
    if isinstance(error, dict):
        details = error.get("details") or {}
        hint = details.get("hint")
        raise Refused(f"{error['message']}{f' ({hint})' if hint else ''}", error["message"], details.get("again"))
    raise Refused(str(error or "the service refused the request"))

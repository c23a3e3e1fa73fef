"""An honest client's calls, timed: it keeps its connection, and takes a new one when it was cut off."""

import http.client
import statistics
import time

from support.service import Http, Service

_CALL = {"name": "computer_operation", "arguments": {"scope": "app", "op": "file.stat", "target": "."}}


class Honest:
    """Calls `file.stat`; a lost connection is part of the time that a call took."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._link: Http = service.http()
        self.cut_off = 0

    def call(self) -> float:
        began = time.perf_counter()
        for _ in range(5):
            try:
                answer = self._link.modern("tools/call", _CALL)
                break
            except (http.client.HTTPException, OSError):
                self.cut_off += 1
                self._link.close()
                self._link = self._service.http()
        assert answer["result"]["isError"] is False
        return time.perf_counter() - began

    def p95(self, calls: int) -> float:
        """The time that 19 of 20 calls keep within."""
        return statistics.quantiles([self.call() for _ in range(calls)], n=20)[18]

    def close(self) -> None:
        self._link.close()

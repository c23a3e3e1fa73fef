"""The whole suite against the service as people run it: what needs no fixture passes, and only what needs one does not."""

from pathlib import Path

import pytest

from conformance import suite
from support.service import serving

pytestmark = pytest.mark.clients
FIXTURE_FREE = {
    "2025-11-25": {
        "server-initialize", "ping", "tools-list", "server-sse-multiple-streams", "dns-rebinding-protection",
        "server-session-lifecycle", "resources-list", "prompts-list",
    },
    "2026-07-28": {
        "tools-list", "server-sse-multiple-streams", "sep-2164-resource-not-found", "dns-rebinding-protection",
        "http-header-validation", "input-required-result-missing-input-response",
        "input-required-result-unsupported-methods", "input-required-result-ignore-extra-params",
        "input-required-result-validate-input", "resources-list", "prompts-list", "caching",
    },
}  # fmt: skip
"""The other scenarios of resources, prompts and completion name fixtures: test_fixture_mode.py runs them on the same code."""
NEEDS_FIXTURES = {
    "sep-2575-server-rejects-undeclared-capability",
    "sep-2575-missing-capability-http-400",
    "sep-2575-http-server-no-independent-requests-on-stream",
    "sep-2575-server-no-log-without-loglevel",
}
"""Checks of server-stateless that call tools the product does not have."""


@pytest.mark.parametrize("revision", FIXTURE_FREE)
def test_the_real_service_passes_what_needs_no_fixture(revision: str, tmp_path: Path) -> None:
    with serving(tmp_path) as service:
        found = suite.run(service.url, tmp_path / "results", "--requirements", revision)
    passed = found.with_status("SUCCESS") - found.with_status("FAILURE")
    missed = FIXTURE_FREE[revision] - passed
    assert not missed, found.complaints(missed)
    if revision == "2026-07-28":
        stateless = found.checks["server-stateless"]
        failed = {check["id"] for check in stateless if check["status"] == "FAILURE"}
        assert failed == NEEDS_FIXTURES, found.complaints({"server-stateless"})
        assert sum(check["status"] == "SUCCESS" for check in stateless) >= 20

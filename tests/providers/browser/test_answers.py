"""What agent-browser answers to a batch, and what a refusal of the whole batch means."""

import json

import pytest

from computer_linker.errors import ExecutionFailed, ProviderUnavailable
from computer_linker.providers.browser.session import results_of


def test_an_agent_browser_before_0_41_is_said_to_be_too_old_and_what_to_install() -> None:
    # The words of 0.27.0, which npm chooses by itself beside a Node that is older than 24.
    said = json.dumps({"success": False, "error": "Unknown command: --omit-command"})
    with pytest.raises(ProviderUnavailable) as refused:
        results_of(said, 1)
    assert refused.value.details["reason"] == "too_old"
    assert "agent-browser@latest" in str(refused.value.details["remedy"])


def test_a_page_that_speaks_of_the_option_is_not_taken_for_an_old_program() -> None:
    said = json.dumps([{"success": False, "error": "Error: Unknown command: --omit-command"}])
    with pytest.raises(ExecutionFailed):
        results_of(said, 1)

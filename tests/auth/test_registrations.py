"""Anyone may register a client; whoever registers many must not keep the next one out."""

import time
from pathlib import Path

import pytest

from computer_linker.auth.oauth.state import MAX_CLIENTS, MAX_NEW_A_MINUTE, Client, OAuthState

CALLBACK = ["https://good.example/cb"]


def filled(home: Path, *, used: bool) -> OAuthState:
    state = OAuthState(home)
    for number in range(MAX_CLIENTS):
        client = Client(f"client_{number}", "old", CALLBACK, time.time() - 3600 + number)
        state.clients[client.id] = client
        if used:
            state.begin(client, [], [], "https://here.example/mcp", "")
    return state


def test_a_new_client_takes_the_place_of_the_oldest_nobody_consented_to(tmp_path: Path) -> None:
    state = filled(tmp_path, used=False)
    client = state.register("new", CALLBACK)
    assert client is not None
    assert client.id in state.clients
    assert "client_0" not in state.clients
    assert "client_1" in state.clients
    assert len(state.clients) == MAX_CLIENTS


def test_clients_somebody_consented_to_stay(tmp_path: Path) -> None:
    state = filled(tmp_path, used=True)
    assert state.register("new", CALLBACK) is None
    assert len(state.clients) == MAX_CLIENTS


@pytest.mark.parametrize("how", ["expired", "revoked"])
def test_clients_whose_every_session_is_over_give_way(tmp_path: Path, how: str) -> None:
    state = filled(tmp_path, used=True)
    over = list(state.families.values())[7]
    if how == "revoked":
        state.revoke(over.id)
    over.created_at = 0.0
    assert state.register("new", CALLBACK) is not None
    assert over.client_id not in state.clients
    assert len(state.clients) == MAX_CLIENTS


def test_a_session_that_can_never_be_used_again_is_forgotten(tmp_path: Path) -> None:
    state = OAuthState(tmp_path)
    client = state.register("old", CALLBACK)
    assert client is not None
    family = state.begin(client, [], [], "https://here.example/mcp", "")
    state.issue(family)
    family.created_at = 0.0
    state.begin(client, [], [], "https://here.example/mcp", "")
    assert len(state.families) == 2, "its refresh token still works"
    family.access, family.refresh = {}, {"digest": 1.0}
    state.begin(client, [], [], "https://here.example/mcp", "")
    assert family.id not in state.families and len(state.families) == 2


def test_a_flood_of_registrations_is_slowed(tmp_path: Path) -> None:
    state = OAuthState(tmp_path)
    made = [state.register("flood", CALLBACK) for _ in range(MAX_NEW_A_MINUTE + 20)]
    assert len([client for client in made if client is not None]) == MAX_NEW_A_MINUTE

"""Commands that use a secret: real programs get a placeholder, and the host of the secret alone gets the secret."""

import json
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from computer_linker.vault.vault import Vault
from support.canary import CANARY, is_in
from support.secret_scene import HOST, OTHER, Hosts, SecretScene, secret_hosts, secret_scene

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    with secret_hosts(tmp_path_factory.mktemp("hosts")) as made:
        yield made


@pytest.fixture
async def scene(tmp_path: Path, hosts: Hosts) -> AsyncIterator[SecretScene]:
    async with secret_scene(tmp_path, hosts) as made:
        yield made


async def test_the_host_gets_the_secret_and_the_program_its_placeholder(scene: SecretScene) -> None:
    ran = await scene.sh(f'echo "$TOKEN"; curl -sS -H "Authorization: Bearer $TOKEN" {scene.url}/reflect')
    placeholder, _, body = ran["data"]["stdout"].partition("\n")
    assert placeholder != CANARY and placeholder.startswith("tok_") and len(placeholder) == len(CANARY), ran
    assert scene.host.seen[-1][2]["authorization"] == f"Bearer {CANARY}"
    assert json.loads(body)["authorization"] == f"Bearer {placeholder}" and not is_in(json.dumps(ran))


async def test_the_history_names_the_secret_that_a_connection_used(scene: SecretScene) -> None:
    await scene.sh(f'curl -sS -H "Authorization: Bearer $TOKEN" {scene.url}/')
    await scene.sh(f"curl -sS {scene.url}/")
    events: list[dict[str, Any]] = []
    while len(events) < 2:
        found = (await scene.road.data("history.last", "", options={"limit": 50}))["events"]
        events = [each["summary"] for each in found if each["op"] == "network.connect"][::-1]
    assert [(each["host"], each.get("secret")) for each in events] == [(HOST, "token"), (HOST, None)]


async def test_only_the_hosts_that_have_a_secret_are_opened(scene: SecretScene) -> None:
    show = "openssl s_client -connect {}:{} -servername {} </dev/null 2>/dev/null | openssl x509 -noout -issuer"
    opened = await scene.sh(show.format(HOST, scene.host.port, HOST))
    closed = await scene.sh(show.format(OTHER, scene.other.port, OTHER))
    assert "Computer Linker" in opened["data"]["stdout"] and "test authority" in closed["data"]["stdout"]


async def test_a_scope_that_may_not_use_it_has_no_placeholder_and_no_authority(tmp_path: Path, hosts: Hosts) -> None:
    from support.road import folder_scope

    (tmp_path / "second").mkdir()
    plain = folder_scope(tmp_path / "second", "plain", allowedCommands=["*"], network=["a.example.org"])
    async with secret_scene(tmp_path, hosts, plain) as scene:
        script = 'echo "[$TOKEN]"; ls /run/computer-linker; grep -c "" /etc/ssl/certs/ca-certificates.crt'
        ran = await scene.road.data("command.run", ".", scope="plain", input={"command": ["sh", "-c", script]})
        assert ran["stdout"].startswith("[]\n") and "No such file" in ran["stderr"]


async def test_the_authority_exists_in_that_sandbox_alone_and_signs_for_that_host_alone(scene: SecretScene) -> None:
    script = "cat /run/computer-linker/authority.pem; openssl x509 -in /run/computer-linker/authority.pem -noout -text"
    first, second = [(await scene.sh(script))["data"]["stdout"] for _ in range(2)]
    assert first.partition("-----END")[0] != second.partition("-----END")[0]
    assert f"DNS:{HOST}" in first and "Name Constraints: critical" in first
    assert not Path("/run/computer-linker").exists()


async def test_the_sealed_file_and_its_key_are_readable_to_the_owner_alone(scene: SecretScene) -> None:
    home = scene.road.home
    for name in ("secrets.sealed", "secrets.key"):
        if (home / name).exists():
            assert (home / name).stat().st_mode & 0o077 == 0
    assert not is_in((home / "secrets.sealed").read_bytes())
    assert Vault(home).known("token").value == CANARY


async def test_a_sealed_file_that_was_changed_is_refused(scene: SecretScene) -> None:
    path = scene.road.home / "secrets.sealed"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    from computer_linker.errors import ProviderUnavailable

    with pytest.raises(ProviderUnavailable):
        _ = Vault(scene.road.home).all
    assert os.path.getsize(path) == len(content)

"""A secret that a tool prints in lines and groups: it is masked, wherever the breaks are."""

import base64
import json
import random
import re
import string
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from computer_linker.vault.mask import Mask, MaskedStream, Replaced
from support.canary import CANARY, is_in
from support.secret_scene import Hosts, SecretScene, secret_hosts, secret_scene

_RANDOM = random.Random(16)
LONG = "github_pat_" + "".join(_RANDOM.choice(string.ascii_letters + string.digits) for _ in range(82))
TOOLS: dict[str, Callable[[str], bytes]] = {
    "base64": base64.b64decode, "base64 -w 64": base64.b64decode, "base64 -w 20": base64.b64decode,
    "base32": base64.b32decode, "base32 -w 20": base64.b32decode,
    "od -An -v -tx1": bytes.fromhex, "od -An -v -tx1 -w7": bytes.fromhex, "od -An -v -tx1 -w30": bytes.fromhex,
}  # fmt: skip


def _read_back(tool: str, printed: bytes) -> bytes:
    """What the tool was given, as far as its output still has it."""
    return TOOLS[tool](re.sub(r"\s|\[secret x\]", "", printed.decode()))


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("size", [None, 7, 100])
def test_a_long_secret_is_masked_wherever_a_line_ends(tool: str, size: int | None) -> None:
    mask = Mask([Replaced(LONG, "[secret x]")])
    for offset in range(0, 80, 3):
        given = b"-" * offset + LONG.encode() + b"."
        printed = subprocess.run(tool.split(), input=given, capture_output=True, check=True).stdout
        assert LONG.encode() in _read_back(tool, printed)
        masked = mask.masked(printed) if size is None else _in_pieces(mask, printed, size)
        assert masked.count(b"[secret x]") == 1, (offset, masked)


def _in_pieces(mask: Mask, data: bytes, size: int) -> bytes:
    stream = MaskedStream(mask)
    return b"".join([*(stream.feed(data[at : at + size]) for at in range(0, len(data), size)), stream.finish()])


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    with secret_hosts(tmp_path_factory.mktemp("hosts")) as made:
        yield made


@pytest.fixture
async def scene(tmp_path: Path, hosts: Hosts) -> AsyncIterator[SecretScene]:
    async with secret_scene(tmp_path, hosts) as made:
        yield made


@pytest.mark.anyio
@pytest.mark.parametrize("tool", TOOLS)
async def test_no_tool_prints_it_in_lines(scene: SecretScene, tool: str) -> None:
    (scene.road.root / "left").write_text(f"a few words before {CANARY} and after\n")
    ran = await scene.sh(f"{tool} left")
    assert ran["ok"] and "[secret token]" in ran["data"]["stdout"] and not is_in(json.dumps(ran)), ran

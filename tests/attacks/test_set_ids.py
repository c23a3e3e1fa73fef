"""A sandboxed command leaves no program on the disk that runs with the rights of its owner, by whatever call it tries."""

import json
from pathlib import Path

import pytest

from attacks.test_decisions_reach_effects import KINDS, python, road_under
from computer_linker.providers.sandbox.boundary import Kind

pytestmark = pytest.mark.anyio

TRIES = """
import ctypes, json, mmap, os
libc = ctypes.CDLL(None, use_errno=True)
body = open("/bin/true", "rb").read()

def made(name, mode=0o755):
    fd = os.open(name, os.O_CREAT | os.O_EXCL | os.O_RDWR, mode)
    os.write(fd, body)
    return fd

def by_chmod(bits):
    os.close(made("chmod-%o" % bits)); os.chmod("chmod-%o" % bits, bits | 0o755)

def by_fchmod(bits):
    os.fchmod(made("fchmod-%o" % bits), bits | 0o755)

def by_fchmodat(bits):
    os.close(made("at-%o" % bits)); os.chmod("at-%o" % bits, bits | 0o755, dir_fd=os.open(".", os.O_RDONLY))

def by_fchmodat2(bits):
    os.close(made("at2-%o" % bits))
    if libc.syscall(452, -100, b"at2-%o" % bits, bits | 0o755, 0) != 0:
        raise OSError(ctypes.get_errno(), "fchmodat2")

def by_creating(bits):
    made("created-%o" % bits, bits | 0o755)

def by_a_mapping(bits):
    fd = os.open("mapped-%o" % bits, os.O_CREAT | os.O_EXCL | os.O_RDWR, bits | 0o755)
    os.ftruncate(fd, len(body))
    mmap.mmap(fd, len(body))[:] = body

def by_a_node(bits):
    os.mknod("node-%o" % bits, bits | 0o100755)
    os.write(os.open("node-%o" % bits, os.O_WRONLY), body)

def by_a_kernel_copy(bits):
    fd = os.open("copied-%o" % bits, os.O_CREAT | os.O_EXCL | os.O_RDWR, bits | 0o755)
    os.copy_file_range(os.open("chmod-%o" % bits, os.O_RDONLY), fd, len(body))

refused = []
for way in (by_chmod, by_fchmod, by_fchmodat, by_fchmodat2, by_creating, by_a_mapping, by_a_node, by_a_kernel_copy):
    for bits in (0o4000, 0o2000, 0o6000):
        try:
            way(bits)
        except OSError as error:
            refused.append([way.__name__, error.errno])
os.chmod("chmod-4000", 0o700)
print(json.dumps(refused))
"""


@pytest.mark.parametrize("network", [False, True])
@pytest.mark.parametrize("kind", KINDS)
async def test_no_program_gets_the_rights_of_its_owner(tmp_path: Path, kind: Kind, network: bool) -> None:
    async with road_under(tmp_path, kind, network=network) as road:
        ran = await road.data("command.run", ".", input=python(TRIES))
        assert ran["exitCode"] == 0 and ran["boundary"].startswith(kind), ran
        left = [path for path in road.root.iterdir() if path.stat().st_mode & 0o6000 and path.stat().st_size]
    assert left == []
    # Ordinary modes are set as ever.
    assert (road.root / "chmod-4000").stat().st_mode & 0o7777 == 0o700
    assert ["by_chmod", 1] in json.loads(ran["stdout"])

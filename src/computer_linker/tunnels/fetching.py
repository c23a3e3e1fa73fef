"""Fetches a tunnel program from a release the owner named, checked against the digests published there."""

import hashlib
import io
import platform
import re
import zipfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from anyio.to_thread import run_sync

from computer_linker.errors import ExecutionFailed, InvalidRequest
from computer_linker.http_client import RequestFailed, Response, fetch
from computer_linker.system import NAME, os, sync

_SUMS = "SHA256SUMS.txt"
_SUM_LINE = re.compile(r"^([0-9a-f]{64}) [ *]([A-Za-z0-9][A-Za-z0-9._+-]{0,200})$")
_MAX_ARCHIVE = 256 * 1024 * 1024
_MAX_PROGRAM = 512 * 1024 * 1024
_SECONDS = 120.0
_REDIRECTS = 3
_ARCHITECTURES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


@dataclass(frozen=True, slots=True)
class Fetched:
    """A program on the disk, with its digest."""

    path: Path
    sha256: str
    archive: str
    is_new: bool

    def discard(self) -> None:
        """Remove it, unless it was there before."""
        if self.is_new:
            self.path.unlink(missing_ok=True)


async def fetch_program(release: str, name: str, folder: Path) -> Fetched:
    """Fetch `name` for this machine into `folder`. Nothing is stored unless the archive has the published digest."""
    _check_address(release)
    base = release.rstrip("/") + "/"
    archive, published = _chosen(await _get(urljoin(base, _SUMS), 65_536), name)
    content = await _get(urljoin(base, archive), _MAX_ARCHIVE)
    # Hundreds of megabytes are hashed, unpacked and synced: not in the event loop.
    return await run_sync(_stored, folder, name, archive, content, published)


def _stored(folder: Path, name: str, archive: str, content: bytes, published: str) -> Fetched:
    if hashlib.sha256(content).hexdigest() != published:
        raise ExecutionFailed(f"{archive} does not have the SHA-256 that {_SUMS} publishes; nothing was stored.")
    return _store(folder, name, archive, _unpacked(content, name, archive))


def _check_address(release: str) -> None:
    parts = urlsplit(release)
    is_loopback = parts.scheme == "http" and parts.hostname == "127.0.0.1"
    if not (parts.scheme == "https" or is_loopback) or not parts.hostname or parts.query or parts.username:
        raise InvalidRequest("A release is fetched from an https address.", hint="--fetch-from https://...")


async def _get(url: str, max_bytes: int) -> bytes:
    for _ in range(_REDIRECTS + 1):
        try:
            answer = await fetch(url, seconds=_SECONDS, max_bytes=max_bytes, headers={"accept": "*/*"})
        except RequestFailed as error:
            raise ExecutionFailed(f"{url} cannot be fetched: {error}.") from error
        if answer.status not in (301, 302, 303, 307, 308):
            break
        url = _redirected(url, answer)
    if answer.status != 200:
        raise ExecutionFailed(f"{url} answers with status {answer.status}; nothing was stored.")
    return answer.body


def _redirected(url: str, answer: Response) -> str:
    there = urljoin(url, answer.headers.get("location", ""))
    if urlsplit(there).scheme != urlsplit(url).scheme:
        raise ExecutionFailed(f"{url} leads to an address of another kind; nothing was stored.")
    return there


def _chosen(sums: bytes, name: str) -> tuple[str, str]:
    """The archive for this machine, and its digest."""
    architecture = _ARCHITECTURES.get(platform.machine().lower(), "unknown")
    ending = f"-{NAME}-{architecture}.zip"
    lines = [found for line in sums.decode("ascii", "replace").splitlines() if (found := _SUM_LINE.match(line.strip()))]
    fitting = {found[2]: found[1] for found in lines if found[2].startswith(f"{name}-") and found[2].endswith(ending)}
    if len(fitting) != 1:
        raise ExecutionFailed(f"{_SUMS} names {len(fitting)} archives {name}-...{ending}; one is needed.")
    return next(iter(fitting.items()))


def _unpacked(content: bytes, name: str, archive: str) -> bytes:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            member = packed.getinfo(name)
            if member.file_size > _MAX_PROGRAM:
                raise ExecutionFailed(f"{name} in {archive} is larger than a program should be.")
            return packed.read(member)
    except (zipfile.BadZipFile, KeyError, NotImplementedError, RuntimeError) as error:
        raise ExecutionFailed(f"{archive} has no program {name} that can be unpacked.") from error


def _store(folder: Path, name: str, archive: str, program: bytes) -> Fetched:
    digest = hashlib.sha256(program).hexdigest()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / f"{name}-{digest[:16]}"
    is_new = not path.exists()
    fresh = folder / f".{path.name}.new"
    with suppress(FileNotFoundError):
        fresh.unlink()
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o700)
    with os.fdopen(fd, "wb") as file:
        file.write(program)
        file.flush()
        sync(fd)
    fresh.replace(path)
    return Fetched(path, digest, archive, is_new)

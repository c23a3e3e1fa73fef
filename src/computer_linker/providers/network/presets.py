"""The hosts of package managers, as this machine's own settings name them; none where they name none."""

import configparser
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from computer_linker.model.network import PRESETS, Entry, address_of, canonical_host
from computer_linker.system import os

_MAX_SETTINGS = 1_000_000
_URL = re.compile(r"\bhttps?://[^\s'\"<>,|\\]+")
IsTrusted = Callable[[Path], bool]
"""False for a file that a scope can write: its programs could name any host in it."""


def preset_entries(name: str, home: Path, environ: Mapping[str, str], is_trusted: IsTrusted) -> tuple[Entry, ...]:
    """The entries of one preset."""
    assert name in PRESETS
    texts = _SETTINGS[name](home, environ, is_trusted)
    return tuple(dict.fromkeys(entry for text in texts for entry in _entries(text)))


def _entries(text: str) -> Iterator[Entry]:
    for url in _URL.findall(text):
        try:
            parts = urlsplit(url)
            host = canonical_host(parts.hostname or "")
            port = parts.port or (443 if parts.scheme == "https" else 80)
        except ValueError:
            continue
        if address_of(host) is None:
            yield Entry(host, (port,))


def _read(path: Path, is_trusted: IsTrusted) -> str:
    """The text of a file that is trusted by its real path. It is opened first: a link to it may be changed meanwhile."""
    try:
        # Without waiting, for a pipe of this name would wait for a writer.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            real = path.resolve(strict=True)
            if not is_trusted(real) or not os.path.samestat(os.fstat(file.fileno()), real.stat()):
                return ""
            return file.read(_MAX_SETTINGS).decode("utf-8", "replace")
    except OSError:
        return ""


def _pip(home: Path, environ: Mapping[str, str], is_trusted: IsTrusted) -> Iterator[str]:
    yield from (environ.get(name, "") for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"))
    for path in (Path("/etc/pip.conf"), home / ".pip/pip.conf", home / ".config/pip/pip.conf"):
        settings = configparser.ConfigParser(interpolation=None, strict=False)
        try:
            settings.read_string(_read(path, is_trusted))
        except configparser.Error:
            continue
        for section in settings.sections():
            yield from (settings.get(section, name, fallback="") for name in ("index-url", "extra-index-url"))


def _npm(home: Path, environ: Mapping[str, str], is_trusted: IsTrusted) -> Iterator[str]:
    yield environ.get("NPM_CONFIG_REGISTRY", "") or environ.get("npm_config_registry", "")
    for path in (Path("/etc/npmrc"), Path("/usr/etc/npmrc"), home / ".npmrc"):
        for line in _read(path, is_trusted).splitlines():
            name, _, value = line.partition("=")
            if name.strip() == "registry" or name.strip().endswith(":registry"):
                yield value


def _apt(_home: Path, _environ: Mapping[str, str], is_trusted: IsTrusted) -> Iterator[str]:
    folder = Path("/etc/apt/sources.list.d")
    found = sorted(folder.iterdir()) if folder.is_dir() else []
    for path in (Path("/etc/apt/sources.list"), *(each for each in found if each.suffix in (".list", ".sources"))):
        lines = _read(path, is_trusted).splitlines()
        yield from (line for line in lines if not line.lstrip().startswith("#"))


def _cargo(home: Path, environ: Mapping[str, str], is_trusted: IsTrusted) -> Iterator[str]:
    folder = Path(environ.get("CARGO_HOME") or home / ".cargo")
    for name in ("config.toml", "config"):
        try:
            settings = tomllib.loads(_read(folder / name, is_trusted))
        except tomllib.TOMLDecodeError:
            continue
        for table in ("source", "registries"):
            tables = settings.get(table, {})
            for entry in tables.values() if isinstance(tables, dict) else ():
                yield from (str(entry.get(key, "")) for key in ("registry", "index") if isinstance(entry, dict))


def _go(home: Path, environ: Mapping[str, str], is_trusted: IsTrusted) -> Iterator[str]:
    settings = _read(home / ".config/go/env", is_trusted)
    for name in ("GOPROXY", "GOSUMDB"):
        named = re.findall(rf"(?m)^{name}=(.*)$", settings)
        yield environ.get(name) or (named[-1] if named else "")


_SETTINGS: dict[str, Callable[[Path, Mapping[str, str], IsTrusted], Iterator[str]]] = {
    "pip": _pip,
    "npm": _npm,
    "apt": _apt,
    "cargo": _cargo,
    "go": _go,
}


def trusted_by(writer: Callable[[str], str | None]) -> IsTrusted:
    """Trusts the files that no scope writes."""
    return lambda path: writer(str(path)) is None

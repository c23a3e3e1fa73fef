"""The live config: read again when the file changed; while it is invalid, what the last valid one and the file both leave."""

import logging
import secrets
import time
from pathlib import Path
from threading import Lock
from typing import Any

from computer_linker.config.load import CONFIG_NAME, Check, Document, document_of, read_file, stamp_of, validated
from computer_linker.config.mounts import table
from computer_linker.config.roots import remembered
from computer_linker.config.runtime import effective, state_places
from computer_linker.config.schema import BridgeSettings, Config, TunnelSettings
from computer_linker.config.store import keep_last_good
from computer_linker.errors import ConfigInvalid
from computer_linker.model.scope import Scope
from computer_linker.model.times import shown_s
from computer_linker.system import os

log = logging.getLogger(__name__)
FRESH_FOR_S = 0.001
"""How long one stat of the file is valid: long enough for the several reads of one call, too short to notice."""


class LiveConfig:
    """One state folder's config. A new token or scope applies from the next call.

    A file that is not valid when it is first read is refused. One that becomes so later leaves the last valid config in force,
    without what the file changes (`in_force`). A file that is gone, or that others could have written, stops every call.

    Any thread may ask. Only who holds the lock writes a field, and the config is replaced whole: one that was valid a moment ago
    is returned without the lock.
    """

    def __init__(self, home: Path, check: Check | None = None, fresh_for_s: float = FRESH_FOR_S) -> None:
        self.home = home
        self._check = check
        self._lock = Lock()
        self._path = os.fspath(home / CONFIG_NAME)
        self._stamp: tuple[int, ...] = ()
        self._config: Config | None = None
        self._good: tuple[Config, Document] | None = None
        self._refusal: ConfigInvalid | None = None
        self._fresh_for_s = fresh_for_s
        self._fresh_until = 0.0
        self._mounts = 0
        self._places: list[tuple[str, ...]] = []
        """Where each root shows the state folder, as of the last look at the mounts."""
        self._exposed: tuple[str, Config | None, Config | None] | None = None
        self.approval_page_since: str | None = None
        """When the config in force first had the approval page on; None while it is off."""

    def expose(self, public_url: str | None) -> None:
        """Use the open tunnel's address as the public one, overriding the file."""
        with self._lock:
            self._exposed = None if public_url is None else (public_url, None, None)

    def current(self) -> Config:
        """Return the config of the file now. Raises ConfigInvalid while it is invalid."""
        is_fresh = time.monotonic() < self._fresh_until
        # Read after that, so that it is no older than the look which made it fresh.
        config = self._config
        if is_fresh and config is not None and self._exposed is None:
            return config
        with self._lock:
            return self._as_exposed(self._looked_at())

    def _looked_at(self) -> Config:
        """The config of the file, read again where that changed. Called with the lock, as everything below."""
        now = time.monotonic()
        if now < self._fresh_until and self._config is not None:
            return self._config
        try:
            stamp = stamp_of(os.stat(self._path, follow_symlinks=False))  # a Path costs more than the call
        except OSError:
            stamp = ()
        if stamp != self._stamp or not stamp or self._shows_otherwise():
            self._reload()
        # Not before: until then other threads wait for what is read, and do not get what was valid before it.
        self._fresh_until = now + self._fresh_for_s
        if self._config is None:
            raise self._refused()
        return self._config

    def _shows_otherwise(self) -> bool:
        """True when a mount was made or removed by which a root shows the state folder."""
        mounts = table()
        mounts.mounts()
        if mounts.version == self._mounts:
            return False
        self._mounts = mounts.version
        known, self._places = self._places, _state_places(self._config, self.home)
        return known != self._places

    def _as_exposed(self, config: Config) -> Config:
        """The config with the tunnel's address; one object per version, because callers compare its identity."""
        if self._exposed is None or config.owner_token is None:
            return config
        url, made_from, made = self._exposed
        if made is None or made_from is not config:
            made = config.model_copy(update={"public_base_url": url})
            self._exposed = (url, config, made)
        return made

    def __call__(self) -> Config:
        return self.current()

    def _reload(self) -> None:
        found: Config | None = None
        refusal: ConfigInvalid | None = None
        document: Document | None = None
        stamp: tuple[int, ...] = ()
        try:
            raw, stamp = read_file(self.home)
            document = document_of(raw, stamp)
            found = self._effective(validated(document, self.home, self._check), document)
            self._places = _state_places(found, self.home)
            self._good = found, document
            keep_last_good(self.home, raw)
        except ConfigInvalid as error:
            refusal = error
            if self._good is not None and error.problems:
                log.warning("config.json is refused, the last valid one stays in force: %s", error.message)
                found = in_force(*self._good, document, error)
        is_on = found is not None and found.approval_page
        since = (self.approval_page_since or shown_s(time.time())) if is_on else None
        self._config, self._refusal, self._stamp, self.approval_page_since = found, refusal, stamp, since

    def _effective(self, config: Config, document: Document) -> Config:
        try:
            return effective(config, self.home, identities=remembered(self.home, config))
        except ConfigInvalid as error:
            positions = document.positions
            if positions is None or not error.problems:
                raise
            raise ConfigInvalid.of(map(positions.located, error.problems), error.hint) from None

    def _refused(self) -> ConfigInvalid:
        # A fresh exception each time: one that is raised twice grows its traceback.
        refusal = self._refusal
        if refusal is None:
            return ConfigInvalid("no config")
        return ConfigInvalid(refusal.message, refusal.hint, refusal.problems)


def _state_places(config: Config | None, home: Path) -> list[tuple[str, ...]]:
    state = Path(os.path.realpath(home))
    return [
        state_places(root, state) for scope in (config.scopes if config is not None else ()) for root in scope.roots
    ]


def in_force(good: Config, accepted: Document, refused: Document | None, why: ConfigInvalid) -> Config:
    """The last good config without what the refused document changes; all of it when that is not JSON at all.

    Never more is in force than before, nor than the file gives. A scope that the refused file leaves as it was goes on. One that
    it changes or no longer has keeps no right until the file is valid, because either version could be the narrower one. The
    same holds for the token, the tunnel and the other ways in.
    Of JSON that cannot be read as a config (a doubled key, an unknown field of the older form) every part counts as changed.
    """
    reasons = tuple(str(problem) for problem in why.problems)
    if refused is None and not any(problem.field for problem in why.problems):
        return good.in_place_of(reasons)
    now: dict[str, Any] = {} if refused is None else refused.value
    changes: dict[str, Any] = {"scopes": _suspended(good, accepted.value, now)}
    for name, field, narrowest in (
        ("ownerToken", "owner_token", secrets.token_hex(32)),
        ("publicBaseUrl", "public_base_url", None),
        ("tunnel", "tunnel", TunnelSettings()),
        ("bridge", "bridge", BridgeSettings()),
        ("approvalPage", "approval_page", False),
    ):
        if accepted.value.get(name) != now.get(name):
            changes[field] = narrowest
    return good.model_copy(update=changes).in_place_of(reasons)


def _suspended(good: Config, accepted: dict[str, Any], refused: dict[str, Any]) -> list[Scope]:
    before, after = _by_id(accepted), _by_id(refused)
    return [
        scope
        if before.get(scope.id) == after.get(scope.id)
        # Not left out: its rules about what lies inside another scope's folder go on.
        else scope.closed()
        for scope in good.scopes
    ]


def _by_id(document: dict[str, Any]) -> dict[str, Any]:
    scopes = document.get("scopes")
    if not isinstance(scopes, list):
        return {}
    return {str(scope.get("id")): scope for scope in scopes if isinstance(scope, dict)}

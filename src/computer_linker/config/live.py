"""The live config: read again when the file changed; while it is invalid, what the last valid one and the file both leave."""

import logging
import os
import time
from pathlib import Path

from computer_linker.config.last_good import in_force
from computer_linker.config.load import CONFIG_NAME, Check, Document, document_of, read_file, stamp_of, validated
from computer_linker.config.roots import remembered
from computer_linker.config.runtime import effective
from computer_linker.config.schema import Config
from computer_linker.config.store import keep_last_good
from computer_linker.errors import ConfigInvalid

log = logging.getLogger(__name__)
FRESH_FOR_S = 0.001
"""How long one stat of the file is valid: long enough for the several reads of one call, too short to notice."""


class LiveConfig:
    """One state folder's config. A new token or scope applies from the next call.

    A file that is not valid when it is first read is refused. One that becomes so later leaves the last valid config in force,
    without what the file changes (`last_good`). A file that is gone, or that others could have written, stops every call.
    """

    def __init__(self, home: Path, check: Check | None = None, fresh_for_s: float = FRESH_FOR_S) -> None:
        self.home = home
        self._check = check
        self._path = os.fspath(home / CONFIG_NAME)
        self._stamp: tuple[int, ...] = ()
        self._config: Config | None = None
        self._good: tuple[Config, Document] | None = None
        self._refusal: ConfigInvalid | None = None
        self._fresh_for_s = fresh_for_s
        self._fresh_until = 0.0
        self._exposed: tuple[str, Config | None, Config | None] | None = None

    def expose(self, public_url: str | None) -> None:
        """Use the open tunnel's address as the public one, overriding the file."""
        self._exposed = None if public_url is None else (public_url, None, None)

    def current(self) -> Config:
        """Return the config of the file now. Raises ConfigInvalid while it is invalid."""
        now = time.monotonic()
        if now < self._fresh_until and self._config is not None:
            return self._as_exposed(self._config)
        self._fresh_until = now + self._fresh_for_s
        try:
            stamp = stamp_of(os.stat(self._path, follow_symlinks=False))  # noqa: PTH116  # a Path costs more than the call
        except OSError:
            stamp = ()
        if stamp != self._stamp or not stamp:
            self._reload()
        if self._config is None:
            raise self._refused()
        return self._as_exposed(self._config)

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
        self._config, self._refusal, self._stamp = None, None, ()
        document: Document | None = None
        try:
            raw, self._stamp = read_file(self.home)
            document = document_of(raw, self._stamp)
            config = validated(document, self.home, self._check)
            self._config = self._effective(config, document)
            self._good = self._config, document
            keep_last_good(self.home, raw)
        except ConfigInvalid as error:
            self._refusal = error
            if self._good is not None and error.problems:
                log.warning("config.json is refused, the last valid one stays in force: %s", error.message)
                self._config = in_force(*self._good, document, error)

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

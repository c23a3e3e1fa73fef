"""The live config: read again when the file changed, refusing while it is invalid."""

import os
import time
from pathlib import Path

from computer_linker.config.load import CONFIG_NAME, Check, read_document, stamp_of, validated
from computer_linker.config.roots import remembered
from computer_linker.config.runtime import effective
from computer_linker.config.schema import Config
from computer_linker.errors import ConfigInvalid

FRESH_FOR_S = 0.001
"""How long one stat of the file is valid: long enough for the several reads of one call, too short to notice."""


class LiveConfig:
    """One state folder's config. A new token or scope applies from the next call; an invalid file stops every call."""

    def __init__(self, home: Path, check: Check | None = None, fresh_for_s: float = FRESH_FOR_S) -> None:
        self.home = home
        self._check = check
        self._path = os.fspath(home / CONFIG_NAME)
        self._stamp: tuple[int, ...] = ()
        self._config: Config | None = None
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
        try:
            document = read_document(self.home)
            self._stamp = document.stamp
            config = validated(document, self.home, self._check)
            self._config = effective(config, self.home, identities=remembered(self.home, config))
        except ConfigInvalid as error:
            self._refusal = error

    def _refused(self) -> ConfigInvalid:
        # A fresh exception each time: one that is raised twice grows its traceback.
        refusal = self._refusal
        return ConfigInvalid(refusal.message, refusal.hint) if refusal is not None else ConfigInvalid("no config")

"""The secrets of one command: placeholders in its environment, and what opens the TLS of their hosts."""

import ssl
from collections.abc import Callable, Collection
from functools import cached_property, partial
from pathlib import Path
from typing import Self

from computer_linker.computer.facets.processes import StagedText
from computer_linker.providers.network.authority import Authority, bundle_text, system_bundle
from computer_linker.providers.network.browser_trust import trusting
from computer_linker.providers.network.opened import Handle, made_in_thread
from computer_linker.providers.network.ssh_agent import AgentKey, SshAgent
from computer_linker.services import Services
from computer_linker.vault.mask import Mask, Replaced
from computer_linker.vault.secret import StoredSecret, placeholder_for
from computer_linker.vault.ssh_key import host_name, load_key, public_blob
from computer_linker.vault.vault import Vault

_FOLDER = "/run/computer-linker"
_OWN, _ALL = f"{_FOLDER}/authority.pem", f"{_FOLDER}/certificates.pem"
AGENT = f"{_FOLDER}/ssh/agent"
_KNOWN_HOSTS = f"{_FOLDER}/ssh_known_hosts"
_SSH_SETTINGS = ("/etc/ssh/ssh_config", "/usr/etc/ssh/ssh_config")
_SSH_TEXT = f"""GlobalKnownHostsFile {_KNOWN_HOSTS} /etc/ssh/ssh_known_hosts
"""
"""Of two values of a setting ssh takes the first."""
_NAMED_IN = (
    "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "PIP_CERT", "npm_config_cafile",
    "CARGO_HTTP_CAINFO", "AWS_CA_BUNDLE", "DENO_CERT",
)  # fmt: skip
"""Variables by which programs find the certificates they trust."""
_HELPER = '!f() {{ test "$1" = get && printf \'username=x-access-token\\npassword=%s\\n\' "${variable}"; }}; f'


class CommandSecrets:
    """What the owner stores and allows is asked again for every request, so that a revocation applies at once."""

    def __init__(self, vault: Vault, allowed: Callable[[], Collection[str]]) -> None:
        self._vault, self._allowed = vault, allowed
        names = allowed()
        usable = [each for each in vault.all if each.name in names]
        self._stored = [each for each in usable if each.is_for(each.host, each.port)]
        self._keys = frozenset(each.name for each in usable if each.scheme == "ssh")
        self.agent = SshAgent(self._agent_keys) if self._keys else None
        """Signs with the SSH keys of the scope; None without any."""
        self._placeholders = {each.name: placeholder_for(each.value) for each in self._stored}
        self._hosts: dict[tuple[str, int], _HostSecrets] = {}

    @classmethod
    def of_scope(cls, services: Services, scope: str) -> Self | None:
        """Those that the scope allows; None without any."""

        def allowed() -> Collection[str]:
            found = services.config.scope(scope)
            return () if found is None else found.policy.secrets

        made = cls(services.use(Vault), allowed)
        return made if made._stored or made.agent else None

    @cached_property
    def authority(self) -> Authority:
        return Authority(tuple(dict.fromkeys(each.host for each in self._stored)))

    def of(self, host: str, port: int) -> "_HostSecrets | None":
        """The secrets for a host; None where it has none, and is not opened."""
        if not any(each.is_for(host, port) for each in self._now()):
            return None
        made = self._hosts.get((host, port))
        if made is None:
            made = self._hosts[host, port] = _HostSecrets(self.authority, host, partial(self._handles, host, port))
        return made

    def environment(self) -> dict[str, str]:
        """The placeholders, the certificates, a credential helper for git, and the agent's socket."""
        made = {} if self.agent is None else {"SSH_AUTH_SOCK": AGENT}
        if not self._stored:
            return made
        made |= dict.fromkeys(_NAMED_IN, _ALL) | {"NODE_EXTRA_CA_CERTS": _OWN}
        made |= {each.variable: self._placeholders[each.name] for each in self._stored}
        logins = [each for each in self._stored if "authorization" in each.headers]
        for at, each in enumerate(logins):
            made[f"GIT_CONFIG_KEY_{at}"] = f"credential.{each.origin}.helper"
            made[f"GIT_CONFIG_VALUE_{at}"] = _HELPER.format(variable=each.variable)
        return made | ({"GIT_CONFIG_COUNT": str(len(logins))} if logins else {})

    def files(self) -> tuple[StagedText, ...]:
        """The certificates, as files of the sandbox; also in the place of the system's own bundle. And the keys of SSH hosts."""
        made: list[StagedText] = [] if self.agent is None else self._ssh_files()
        if self._stored:
            bundle = system_bundle()
            every = bundle_text(bundle) + "\n" + self.authority.pem
            made += (StagedText(_OWN, self.authority.pem), StagedText(_ALL, every))
            made += () if bundle is None else (StagedText(bundle, every),)
            made += self._browsers[1]
        return tuple(made)

    def emptied(self) -> tuple[str, ...]:
        """Folders of settings that `files` makes anew."""
        return self._browsers[0] if self._stored else ()

    @cached_property
    def _browsers(self) -> tuple[tuple[str, ...], list[StagedText]]:
        return trusting(self.authority.pem)

    def _ssh_files(self) -> list[StagedText]:
        hosts = (each for each in self._vault.all if each.name in self._keys)
        lines = (f"{host_name(each.host, each.port)} {key}\n" for each in hosts for key in each.host_keys)
        settings = (path for path in _SSH_SETTINGS if Path(path).is_file())
        own = StagedText(_KNOWN_HOSTS, "".join(lines))
        return [own, *(StagedText(path, _SSH_TEXT + bundle_text(path)) for path in settings)]

    def _agent_keys(self) -> list[AgentKey]:
        names = self._allowed()
        return [
            AgentKey(
                each.name,
                each.host,
                each.port,
                each.user,
                frozenset(map(public_blob, each.host_keys)),
                load_key(each.value),
            )
            for each in self._vault.all
            if each.name in self._keys and each.name in names and each.scheme == "ssh"
        ]

    def _now(self) -> list[StoredSecret]:
        names = self._allowed()
        return [each for each in self._vault.all if each.name in names and each.name in self._placeholders]

    def _handles(self, host: str, port: int) -> list[tuple[Handle, str | None]]:
        return [
            (Handle(each.name, self._placeholders[each.name], each.value, tuple(each.headers)), each.authority)
            for each in self._now()
            if each.is_for(host, port)
        ]


class _HostSecrets:
    """The secrets of one command for one host."""

    def __init__(self, authority: Authority, host: str, handles: Callable[[], list[tuple[Handle, str | None]]]) -> None:
        self._authority, self._host, self._handles = authority, host, handles
        self._sent: dict[str, str] = {}
        self._masked = (0, Mask(()))
        self._outside: dict[str | None, ssl.SSLContext] = {}

    def handles(self) -> list[Handle]:
        found = [handle for handle, _ in self._handles()]
        self._sent |= {handle.value: handle.placeholder for handle in found}
        return found

    def mask(self) -> Mask:
        if self._masked[0] != len(self._sent):
            self._masked = (len(self._sent), Mask(Replaced(*pair, is_placeholder=True) for pair in self._sent.items()))
        return self._masked[1]

    def inside(self) -> ssl.SSLContext:
        return self._authority.context(self._host)

    async def outside(self) -> ssl.SSLContext:
        # Of two secrets for one host with different authorities, the one that the owner named counts.
        named = next((authority for _, authority in self._handles() if authority is not None), None)
        if named not in self._outside:
            self._outside[named] = await made_in_thread(named)
        return self._outside[named]

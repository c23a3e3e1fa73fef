"""A reverse tunnel to the owner's own server by the system's ssh: one remote port, no shell, a known host key."""

import os
import re

from computer_linker.config.schema import Config, SshSettings, TunnelName
from computer_linker.errors import ExecutionFailed, ProviderUnavailable
from computer_linker.tunnels.base import contract
from computer_linker.tunnels.program import Wanted, check_private, check_unshared
from computer_linker.tunnels.running import ProgramTunnel

_OPEN = re.compile(r"\bremote forward success for: listen 127\.0\.0\.1:\d+,")
_ALIVE_S = 15
_ALIVE_COUNT = 3
_CONNECT_S = 20
_OPTIONS = {
    # Nothing is asked and nothing is learned: a host key that is not known yet or has changed ends the connection.
    "BatchMode": "yes",
    "StrictHostKeyChecking": "yes",
    "UpdateHostKeys": "no",
    "ConnectTimeout": str(_CONNECT_S),
    "ExitOnForwardFailure": "yes",
    "ServerAliveInterval": str(_ALIVE_S),
    "ServerAliveCountMax": str(_ALIVE_COUNT),
    # The one line that tells that the server listens (OpenSSH 8.5); all else is errors.
    "LogVerbose": "ssh.c:ssh_confirm_remote_forward():*",
}


class SshTunnel(ProgramTunnel):
    """`ssh -N -R`. No file of settings is read: only the known hosts, and the key of the config, the agent or ~/.ssh."""

    name: TunnelName = "ssh"
    contract = contract(
        "ssh",
        "reverse",
        "ssh -N -R 127.0.0.1:<remote port>:127.0.0.1:<port> user@host",
        url_source="config",
        reach="server",
        note="The server's loopback alone, and tunnel.ssh.hostname where a TLS proxy there leads to it.",
    )

    def wanted(self, config: Config) -> Wanted:
        settings = config.tunnel.ssh
        return Wanted("ssh", settings.program, settings.sha256)

    def command(self, config: Config, port: int) -> tuple[list[str], dict[str, str]]:
        settings = config.tunnel.ssh
        if settings.destination is None:
            raise ProviderUnavailable(
                "There is no server to reach by ssh.", hint="computer-linker tunnel start ssh USER@HOST"
            )
        host = settings.hostname
        self.url = f"https://{host}" if host is not None else f"http://127.0.0.1:{settings.remote_port}"
        options = dict(_OPTIONS)
        options |= _key(settings, config) | _known_hosts(settings, config)
        user, _, server = settings.destination.partition("@")
        arguments = ["-F", "none", "-N", "-T", "-n", "-a", "-x"]
        arguments += [part for name, value in options.items() for part in ("-o", f"{name}={value}")]
        arguments += ["-R", f"127.0.0.1:{settings.remote_port}:127.0.0.1:{port}"]
        arguments += ["-p", str(settings.port), "-l", user, "--", server]
        agent = self.around.environment.get("SSH_AUTH_SOCK")
        return arguments, {"SSH_AUTH_SOCK": agent} if agent and settings.identity_file is None else {}

    def read_line(self, line: str) -> None:
        if _OPEN.search(line):
            self.connected.set()

    async def expose(self, port: int) -> None:
        try:
            await super().expose(port)
        except ExecutionFailed as error:
            refusal = _refusal(error.message, self.around.config().tunnel.ssh)
            if refusal is None:
                raise
            # Not tried again: the same answer would come, and servers block addresses that keep asking.
            raise refusal from error


def _key(settings: SshSettings, config: Config) -> dict[str, str]:
    if settings.identity_file is None:
        return {}
    path = check_private(settings.identity_file, "ssh key", config)
    return {"IdentityFile": _quoted(path), "IdentitiesOnly": "yes"}


def _known_hosts(settings: SshSettings, config: Config) -> dict[str, str]:
    if settings.known_hosts is None:
        return {}
    path = check_unshared(settings.known_hosts, "file of known hosts", config)
    return {"UserKnownHostsFile": _quoted(path), "GlobalKnownHostsFile": os.devnull}


def _quoted(path: str) -> str:
    """A path as ssh reads it in an option: quoted, with its own percent signs doubled."""
    if '"' in path or "\\" in path:
        raise ProviderUnavailable("ssh cannot take a path with quotes or backslashes.", hint=f"Rename {path}.")
    return '"' + path.replace("%", "%%") + '"'


def _refusal(message: str, settings: SshSettings) -> ProviderUnavailable | None:
    by_hand = f"ssh -p {settings.port} {settings.destination}"
    if "Host key verification failed" in message:
        return ProviderUnavailable(
            f"The server's host key is not the known one. {message}",
            hint=f"Connect once by hand ({by_hand}) and compare the fingerprint with the server's own.",
        )
    if "Permission denied" in message:
        return ProviderUnavailable(
            f"The server does not accept the key. {message}",
            hint="Add the public key to ~/.ssh/authorized_keys on the server; keys with a passphrase need an agent.",
        )
    # A port that is taken is tried again: after a lost connection the server holds the old one for a while.
    return None

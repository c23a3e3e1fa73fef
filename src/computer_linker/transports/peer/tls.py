"""TLS 1.3 with pinned certificates: the trust store of a link is the one certificate of the other machine."""

import ssl

from computer_linker.transports.peer.identity import Identity
from computer_linker.transports.peer.key_store import as_file

SERVER_NAME = "peer.computer-linker.internal"
"""What links call the other side in TLS; the pinned certificate, not this name, says who it is."""


def client_context(own: Identity, peer_cert_pem: str) -> ssl.SSLContext:
    """For calling a paired machine: only its pinned certificate is accepted, and ours is shown."""
    context = _tls13(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=peer_cert_pem)
    _show(context, own)
    return context


def pairing_context() -> ssl.SSLContext:
    """For the pairing exchange, in which the code, not the channel, proves who is there."""
    context = _tls13(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def server_context(own: Identity, pinned: list[str]) -> ssl.SSLContext:
    """For being called: who shows a certificate must show a pinned one; who shows none can only pair."""
    context = _tls13(ssl.PROTOCOL_TLS_SERVER)
    _show(context, own)
    context.verify_mode = ssl.CERT_OPTIONAL
    for cert in pinned:
        trust(context, cert)
    return context


def trust(context: ssl.SSLContext, cert_pem: str) -> None:
    """Accept this certificate from the next handshake on. Which machine it is, and whether it still is one, is asked after it."""
    context.load_verify_locations(cadata=cert_pem)


def _show(context: ssl.SSLContext, own: Identity) -> None:
    with as_file(own.key_pem) as key_path:
        context.load_cert_chain(own.cert_path, key_path)


def _tls13(protocol: int) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", 0)
    return context

"""The network namespace of a command whose network is a list: loopback only, with listeners that the service holds.

A socket stays in the namespace it was made in, so the launcher's child makes them and hands them to the service: what the
command connects to inside is accepted outside, without a program beside it. Imports little, like all of the launcher.
"""

import _socket
import ctypes
import errno
import fcntl

from computer_linker.computer.local.linux.mount_calls import Unstaged, libc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_CLONE_NEWNET = 0x40000000
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _SIOCSIFADDR, _SIOCSIFNETMASK = 0x8913, 0x8914, 0x8916, 0x891C
_UP = 1
_LOOPBACK_INDEX = 1
"""Loopback is the first device of every namespace."""
_BACKLOG = 128
_ALL_PROTOCOLS = 3
_ATTACH_FILTER = 26
_OUTGOING = 4
_KEPT = 96
_PACKET_TYPE = 0xFFFFF004
"""`SKF_AD_OFF + SKF_AD_PKTTYPE`: an ancillary load of the filter."""
_EVERY_ADDRESS = (
    ("1.0.0.1", "255.0.0.0"), ("2.0.0.1", "254.0.0.0"), ("4.0.0.1", "252.0.0.0"), ("8.0.0.1", "248.0.0.0"),
    ("16.0.0.1", "240.0.0.0"), ("32.0.0.1", "224.0.0.0"), ("64.0.0.1", "192.0.0.0"), ("128.0.0.1", "192.0.0.0"),
    ("192.0.0.1", "224.0.0.0"),
)  # fmt: skip
"""Ranges that make every IPv4 address one of loopback. Without them a connection to an address that the list does not name
leaves no trace: there is no route, so no packet. The kernel makes no range of 0.0.0.0/1, so its half is in parts."""
_FILTER = (
    # Each instruction: code, jump if true, jump if false, operand. Loopback delivers each packet twice: leave one out.
    (0x30, 0, 0, _PACKET_TYPE), (0x15, 17, 0, _OUTGOING),
    (0x30, 0, 0, 0), (0x54, 0, 0, 0xF0), (0x15, 4, 0, 0x40), (0x15, 0, 13, 0x60),
    # IPv6: the next header; the header after it begins at 40.
    (0x30, 0, 0, 6), (0x01, 0, 0, 40), (0x05, 0, 0, 2),
    # IPv4: the protocol; its header has the length that its first byte says.
    (0x30, 0, 0, 9), (0xB1, 0, 0, 0),
    # TCP.
    (0x15, 0, 7, 6),
    # SYN+ACK: the connection is accepted. RST+ACK of sequence 0: nothing listens there.
    (0x50, 0, 0, 13), (0x54, 0, 0, 0x17), (0x15, 3, 0, 0x12), (0x15, 0, 3, 0x14), (0x40, 0, 0, 4), (0x15, 0, 1, 0),
    (0x06, 0, 0, _KEPT), (0x06, 0, 0, 0),
)  # fmt: skip
"""A classic BPF program that lets the kernel's answers to connections through, and nothing else."""


def open_listeners(order: "dict[str, Any]") -> list[_socket.socket]:
    """Enter a new network namespace; return its resolver's socket, the proxy's listener, one listener a port, and one
    packet socket that receives the kernel's answers to connections, where there can be one."""
    if libc.unshare(_CLONE_NEWNET) != 0:
        raise Unstaged(ctypes.get_errno(), "network namespace")
    try:
        _bring_up(order["range"], order["addresses"])
        resolver = _socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM)
        resolver.bind(order["resolver"])
        listeners = [resolver, _listener(*order["proxy"]), *(_listener("::", port) for port in order["ports"])]
        return [*listeners, *_handshakes()]
    except OSError as error:
        raise Unstaged(error.errno or 0, "network namespace") from error


def _handshakes() -> list[_socket.socket]:
    """A socket that receives which ports accepted or refused a connection; empty where the kernel gives none."""
    code = b"".join(
        operation.to_bytes(2, "little") + bytes((yes, no)) + operand.to_bytes(4, "little")
        for operation, yes, no, operand in _FILTER
    )
    held = ctypes.create_string_buffer(code, len(code))
    # `struct sock_fprog`: the number of instructions, and their address.
    program = len(_FILTER).to_bytes(8, "little") + ctypes.addressof(held).to_bytes(8, "little")
    try:
        made = _socket.socket(_socket.AF_PACKET, _socket.SOCK_DGRAM, 0)
        made.setsockopt(_socket.SOL_SOCKET, _ATTACH_FILTER, program)
        made.bind(("lo", _ALL_PROTOCOLS))
    except OSError:
        # Without it such refusals are not reported; what is reachable stays the same.
        return []
    return [made]


def _bring_up(named: tuple[str, str], addresses: list[str]) -> None:
    """Bring loopback up, with the range of the addresses that stand for names, and with the listed addresses."""
    probe = _socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM)
    flags = fcntl.ioctl(probe.fileno(), _SIOCGIFFLAGS, _request(b"lo", bytes(16)))
    up = int.from_bytes(flags[16:18], "little") | _UP
    fcntl.ioctl(probe.fileno(), _SIOCSIFFLAGS, _request(b"lo", up.to_bytes(2, "little") + bytes(14)))
    # On loopback, the whole range of an address with a netmask is local.
    _add(probe, 0, *named)
    for number, (address, netmask) in enumerate(_EVERY_ADDRESS, 1):
        _add(probe, number, address, netmask)
    for number, address in enumerate(addresses, 1 + len(_EVERY_ADDRESS)):
        if ":" in address:
            _add_v6(address)
        else:
            _add(probe, number, address, "255.255.255.255")
    probe.close()


def _add(probe: _socket.socket, number: int, address: str, netmask: str) -> None:
    name = b"lo:%d" % number
    for call, value in ((_SIOCSIFADDR, address), (_SIOCSIFNETMASK, netmask)):
        # `struct sockaddr_in`: the family, a port, the address.
        fcntl.ioctl(probe.fileno(), call, _request(name, b"\2\0\0\0" + _socket.inet_aton(value) + bytes(8)))


def _add_v6(address: str) -> None:
    probe = _socket.socket(_socket.AF_INET6, _socket.SOCK_DGRAM)
    # `struct in6_ifreq`: the address, the length of its prefix, the device.
    packed = _socket.inet_pton(_socket.AF_INET6, address)
    request = packed + (128).to_bytes(4, "little") + _LOOPBACK_INDEX.to_bytes(4, "little")
    fcntl.ioctl(probe.fileno(), _SIOCSIFADDR, request)
    probe.close()


def _request(name: bytes, value: bytes) -> bytes:
    """`struct ifreq`."""
    return name.ljust(16, b"\0") + value.ljust(24, b"\0")


def _listener(address: str, port: int) -> _socket.socket:
    """A listener; of `::` for IPv4 too, where there is IPv6."""
    try:
        made = _socket.socket(_socket.AF_INET6 if ":" in address else _socket.AF_INET, _socket.SOCK_STREAM)
        if ":" in address:
            made.setsockopt(_socket.IPPROTO_IPV6, _socket.IPV6_V6ONLY, 0)
        made.bind((address, port))
    except OSError as error:
        if ":" not in address or error.errno not in (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL):
            raise
        return _listener("0.0.0.0", port)  # noqa: S104  # of the command's own namespace
    made.listen(_BACKLOG)
    return made

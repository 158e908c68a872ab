"""Addresses of the network as text, and sockets that listen: names, IPv4 and IPv6 alike.

    "jm-1:8081"   "10.0.0.1:8081"   "[fd00::1]:8081"        brackets keep the colons of IPv6 apart from the port's
     split_address(text) ─► host, port ─► address_text(host, port)
    bind_socket("::", 8081) ─► a socket of both families     "localhost" ─► 127.0.0.1, which all machines have

A host that listens and the host under which others reach it are two settings: ``is_wildcard`` and ``is_loopback`` tell
which of the first cannot be the second.

Held by: tests/test_network_address.py
"""

from __future__ import annotations

import ipaddress
import socket
from typing import Final

_PORT_MAX: Final = 65535
_IPV6: Final = 6


def plain_host(text: str) -> str:
    """Return a host without the brackets that an address of IPv6 may have."""
    return text[1:-1] if text.startswith("[") and text.endswith("]") else text


def address_text(host: str, port: int) -> str:
    """Return ``host:port``, with brackets where they are needed."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def split_address(text: str) -> tuple[str, int]:
    """Return host and port.

    Raises:
        ValueError: says what is wrong.
    """
    host, separator, digits = text.rpartition(":")
    if not separator or not host or text.endswith("]"):
        raise ValueError("write host:port")
    if ":" in host and not (host.startswith("[") and host.endswith("]")):
        raise ValueError("an address of IPv6 has brackets: write [address]:port")
    if not digits.isascii() or not digits.isdigit() or int(digits) > _PORT_MAX:
        raise ValueError(f"write host:port, {digits!r} is no port")
    return plain_host(host), int(digits)


def canonical_host(host: str) -> str:
    """Return the one spelling of a host: small letters, addresses in their shortest form, no zone.

    An address of IPv4 as a socket of both families shows it (``::ffff:10.0.0.1``) is that of IPv4.
    """
    host = plain_host(host.strip()).lower().removesuffix(".")
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)


def is_ipv6(host: str) -> bool:
    """Whether a host is an address of IPv6."""
    try:
        return ipaddress.ip_address(plain_host(host)).version == _IPV6
    except ValueError:
        return False


def is_name(host: str) -> bool:
    """Whether a host is no address: what it means is known when it is looked up."""
    try:
        ipaddress.ip_address(canonical_host(host))
    except ValueError:
        return True
    return False


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an interface."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(canonical_host(host)).is_loopback
    except ValueError:
        return False


def is_wildcard(host: str) -> bool:
    """Whether a host means all interfaces: one listens there, and none is reached there."""
    return canonical_host(host) in ("", "0.0.0.0", "::")  # noqa: S104


def bind_socket(host: str, port: int) -> socket.socket:
    """Return a TCP socket that is bound; ``::`` means both families where the machine has both.

    Raises:
        OSError: the name is not known, or no socket can be bound.
    """
    # "localhost" may mean ::1 as well; one address is enough, and every machine has this one.
    named = "127.0.0.1" if host == "localhost" else plain_host(host) or "0.0.0.0"  # noqa: S104
    found = socket.getaddrinfo(named, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, protocol, _, address = found[0]
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, not is_wildcard(named))
        bound.bind(address)
    except OSError:
        bound.close()
        raise
    return bound


def local_host_towards(host: str, port: int) -> str | None:
    """Return the address of this machine from which packets to a host leave; None where no route or name is known.

    Nothing is sent: a datagram socket is only told where it would send to.
    """
    if not host:
        return None
    try:
        for family, kind, protocol, _, address in socket.getaddrinfo(plain_host(host), port, type=socket.SOCK_DGRAM):
            try:
                with socket.socket(family, kind, protocol) as probe:
                    probe.connect(address)
                    return canonical_host(probe.getsockname()[0])
            except OSError:
                continue
    except OSError:
        return None
    return None

"""Addresses as text and back, and sockets that listen, over both families."""

import socket

import pytest

from engine.network_address import (
    address_text,
    bind_socket,
    canonical_host,
    is_loopback,
    is_name,
    is_wildcard,
    local_host_towards,
    split_address,
)


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")


@pytest.mark.parametrize(
    ("host", "port", "text"),
    [("jm-1", 8081, "jm-1:8081"), ("10.0.0.1", 1, "10.0.0.1:1"), ("fd00::1", 8081, "[fd00::1]:8081")],
)
def test_an_address_comes_back_from_its_text(host, port, text):
    assert address_text(host, port) == text and split_address(text) == (host, port)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        *[("fd00::1:8081", "has brackets"), ("::1", "has brackets"), ("[fd00::1]", "write host:port")],
        *[(text, "write host:port") for text in ("", "jm", "jm:", ":8081", "jm:x", "jm:65536", "jm:-1", "jm:²")],
    ],
)
def test_what_is_no_address_is_refused(text, wrong):
    with pytest.raises(ValueError, match=wrong):
        split_address(text)


@pytest.mark.parametrize(
    ("host", "spelling"),
    [
        *[("JM-1.example.", "jm-1.example"), ("[FD00:0::0001]", "fd00::1"), ("fe80::1%eth0", "fe80::1")],
        *[("::ffff:10.0.0.1", "10.0.0.1"), ("10.0.0.1", "10.0.0.1"), ("", "")],
    ],
)
def test_a_host_has_one_spelling(host, spelling):
    assert canonical_host(host) == spelling


def test_hosts_that_only_this_machine_reaches_and_those_that_none_reaches():
    assert [is_loopback(host) for host in ("localhost", "127.0.0.7", "::1", "[::1]")] == [True] * 4
    assert [is_loopback(host) for host in ("::", "0.0.0.0", "10.0.0.1", "jm", "")] == [False] * 5
    assert [is_wildcard(host) for host in ("", "0.0.0.0", "::", "[::]", "0::0")] == [True] * 5
    assert [is_wildcard(host) for host in ("localhost", "::1", "10.0.0.1")] == [False] * 3
    assert [is_name(host) for host in ("jm-1", "localhost")] == [True] * 2
    assert [is_name(host) for host in ("[::1]", "10.0.0.1", "fe80::1%eth0")] == [False] * 3


def reached_by(listening, host):
    listening.listen()
    try:
        socket.create_connection((host, listening.getsockname()[1]), 10).close()
    except OSError:
        return False
    return True


@needs_ipv6
def test_all_interfaces_of_ipv6_are_those_of_ipv4_too_and_one_of_them_is_one():
    for host, reaching in (("::", {"::1", "127.0.0.1"}), ("::1", {"::1"}), ("localhost", {"127.0.0.1"})):
        with bind_socket(host, 0) as listening:
            assert {other for other in ("::1", "127.0.0.1") if reached_by(listening, other)} == reaching


def test_a_machine_knows_from_which_address_it_reaches_another():
    assert local_host_towards("127.0.0.1", 1) == "127.0.0.1"
    assert local_host_towards("", 1) is None and local_host_towards("no-such-host.invalid", 1) is None

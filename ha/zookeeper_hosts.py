"""``host:port,host:port,...``: the servers of a quorum.

Held by: tests/ha/test_session_end.py
"""

from __future__ import annotations

_PORT = 2181


def parse_hosts(text: str) -> tuple[tuple[str, int], ...]:
    """Return the servers; ValueError says what is not one."""
    servers = []
    for part in filter(None, map(str.strip, text.split(","))):
        host, separator, port = part.rpartition(":")
        if not separator or part.endswith("]"):
            host, port = part, str(_PORT)
        is_bracketed = host.startswith("[") and host.endswith("]")
        if ":" in host and not is_bracketed:
            raise ValueError(f"{part!r} is not a server of ZooKeeper: write [address]:port for an address of IPv6")
        host = host[1:-1] if is_bracketed else host
        if not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
            raise ValueError(f"{part!r} is not a server of ZooKeeper: write host:port")
        servers.append((host, int(port)))
    if not servers:
        raise ValueError("no server of ZooKeeper is named: write host:port,host:port,...")
    return tuple(servers)


def server_text(host: str, port: int) -> str:
    """Return ``host:port``, with brackets where they are needed."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

"""``conf/zoo.cfg``: the servers of a ZooKeeper quorum, and the configuration of each.

    quorum = read_quorum(path)  ─►  quorum.check(session_timeout_ms)  ─►  quorum.prepare(1) -> its zoo.cfg in its folder

Servers of one machine share the file; each takes the next client port and a folder of its own number. What the file
does not say is set as a small quorum of this engine needs it. Source: zookeeper.sh and ZooKeeper's own format.

Held by: tests/entrypoint/test_zookeeper.py
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from engine.entrypoint.places import home_folder
from engine.errors import ConfigurationError
from engine.network_address import address_text, plain_host
from engine.private_folder import make_closed

_SERVER = re.compile(r"server\.(\d+)")
_DEFAULTS = {
    "tickTime": "500",
    "initLimit": "20",
    "syncLimit": "2",
    "clientPort": "2181",
    "clientPortAddress": "127.0.0.1",
    "dataDir": "log/zookeeper",
    "maxClientCnxns": "0",
    "admin.enableServer": "false",
    "4lw.commands.whitelist": "srvr,ruok,conf,wchs",
    "autopurge.purgeInterval": "24",
}
#: bounds of a session in ticks, by ZooKeeper
_SESSION_TICKS = (2, 20)
#: time for which an isolated leader may go on serving, as a share of the session time-out
_SYNC_SHARE_MAX = 0.5


@dataclass(frozen=True)
class Quorum:
    """``servers``: number -> host:peer port:election port."""

    path: Path
    settings: dict[str, str]
    servers: dict[int, str]

    def host(self, number: int) -> str:
        """Return the machine of a server."""
        return self.servers[number].rpartition(":")[0].rpartition(":")[0].strip("[]")

    def client_port(self, number: int) -> int:
        """Return the port for clients: servers of one machine take one after the other."""
        neighbours = sorted(other for other in self.servers if self.host(other) == self.host(number))
        return self._number("clientPort") + neighbours.index(number)

    def client_address(self, number: int) -> tuple[str, int]:
        """Return the address under which processes of the same machine reach the server."""
        host = self.settings["clientPortAddress"]
        own = {"0.0.0.0": "127.0.0.1", "localhost": "127.0.0.1", "::": "::1"}  # noqa: S104
        return own.get(host, plain_host(host)), self.client_port(number)

    def place(self, number: int) -> str:
        """Return the address at which the server listens, for people."""
        return address_text(plain_host(self.settings["clientPortAddress"]), self.client_port(number))

    def folder(self, number: int) -> Path:
        """Return the data folder of a server."""
        return home_folder() / self.settings["dataDir"] / str(number)

    def check(self, session_timeout_ms: int) -> None:
        """Raise ConfigurationError when sessions of that length would not be given, or not survive an isolation."""
        tick_ms = self._number("tickTime")
        least, most = (
            self._number(key) if key in self.settings else ticks * tick_ms
            for key, ticks in zip(("minSessionTimeout", "maxSessionTimeout"), _SESSION_TICKS, strict=True)
        )
        option = f"high-availability.zookeeper.client.session-timeout ({session_timeout_ms} ms)"
        if not least <= session_timeout_ms <= most:
            raise ConfigurationError(f"{self.path}: sessions last from {least} to {most} ms, but not {option}")
        sync_ms = tick_ms * self._number("syncLimit")
        if sync_ms > _SYNC_SHARE_MAX * session_timeout_ms:
            raise ConfigurationError(
                f"{self.path}: tickTime x syncLimit is {sync_ms} ms, more than half of {option}: sessions would be "
                f"lost with a ZooKeeper server; lower syncLimit or tickTime"
            )

    def prepare(self, number: int) -> Path:
        """Write the server's own configuration and return its path."""
        folder = self.folder(number)
        make_closed(folder)
        lines = dict(self.settings) | {"dataDir": str(folder), "clientPort": str(self.client_port(number))}
        lines |= {f"server.{other}": server for other, server in self.servers.items()}
        (folder / "myid").write_text(f"{number}\n")
        path = folder / "zoo.cfg"
        path.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
        return path

    def _number(self, key: str) -> int:
        try:
            return int(self.settings[key])
        except ValueError as error:
            raise ConfigurationError(f"{self.path}: {key}={self.settings[key]} is not a whole number") from error


def read_quorum(path: Path) -> Quorum:
    """Read a file; one server on this machine where it names none."""
    settings, servers = dict(_DEFAULTS), {}
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        lines = []
    for line in lines:
        key, separator, value = (part.strip() for part in line.partition("="))
        if not key or key.startswith("#"):
            continue
        if not separator:
            raise ConfigurationError(f"{path}: {line!r}: write key=value")
        server = _SERVER.fullmatch(key)
        if server is None:
            settings[key] = value
        elif re.fullmatch(r"[^;]+:\d+:\d+", value):
            servers[int(server[1])] = value
        else:
            raise ConfigurationError(f"{path}: {line!r}: write {key}=host:port:port")
    return Quorum(path, settings, servers or {1: "localhost:2888:3888"})

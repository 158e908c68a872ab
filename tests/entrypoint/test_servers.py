"""``ProcessServer``: its parts end together."""

import asyncio

import pytest

from engine.entrypoint.servers import ProcessServer


class Part:
    def __init__(self, name, ended):
        self.name, self.ended = name, ended

    async def stop(self):
        self.ended.append(self.name)
        raise OSError(f"{self.name} does not end")

    close = stop


def test_every_part_ends_when_the_first_cannot():
    server, ended = ProcessServer.__new__(ProcessServer), []
    server._further = None
    server.http, server.forwarder, server.rpc = (Part(name, ended) for name in ("http", "forwarder", "rpc"))
    with pytest.raises(OSError, match="http does not end") as raised:
        asyncio.run(server.stop())
    assert ended == ["http", "forwarder", "rpc"] and len(raised.value.__notes__) == 2

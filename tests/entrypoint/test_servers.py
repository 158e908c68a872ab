"""``ProcessServer``: its parts end together."""

import asyncio

import pytest

from engine.config.loader import configuration_from_texts
from engine.entrypoint.servers import ProcessServer, load_credentials
from engine.errors import ConfigurationError
from engine.rpc.credentials import Credentials


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


@pytest.mark.parametrize(
    ("bind_host", "has_secret", "has_tls", "starts"),
    [
        ("localhost", False, False, True),
        ("127.0.0.1", False, False, True),
        ("0.0.0.0", False, False, False),
        ("10.0.0.7", False, False, False),
        ("::", False, False, False),
        ("0.0.0.0", True, False, True),
        ("0.0.0.0", False, True, True),
    ],
)
def test_beyond_its_machine_a_process_wants_a_secret_that_others_know(tmp_path, bind_host, has_secret, has_tls, starts):
    path = tmp_path / "cluster.secret"
    texts = {"security.secret-file": str(path), "security.ssl.enabled": str(has_tls).lower()}
    configuration = configuration_from_texts(texts)
    if has_secret:
        Credentials.load_or_create(path)
    if starts:
        load_credentials(configuration, bind_host)
        assert path.exists()
        return
    with pytest.raises(ConfigurationError, match="without the cluster's secret") as refused:
        load_credentials(configuration, bind_host)
    assert bind_host in str(refused.value) and f"> {path})" in str(refused.value) and not path.exists()

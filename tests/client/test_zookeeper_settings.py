"""What the options of ZooKeeper become, and what is wrong with them."""

import pytest

from engine.client.elected_leader import zookeeper_settings
from engine.config.loader import configuration_from_texts
from engine.errors import ConfigurationError
from engine.rpc.credentials import Credentials
from tests.rpc.test_tls import made

PREFIX = "high-availability.zookeeper."


def settings_of(**texts):
    options = {PREFIX + key.replace("__", "."): text for key, text in texts.items()}
    return zookeeper_settings(configuration_from_texts(options, "test"), Credentials(b"the secret of this cluster"))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("DREY_CONF_DIR", str(tmp_path))
    made(tmp_path / "tls")
    return tmp_path


def test_without_files_there_is_no_tls():
    settings = settings_of(quorum="a:1,b:2")
    assert (settings.hosts, settings.tls_ca, settings.tls_certificate, settings.tls_key) == ("a:1,b:2", "", "", "")


def test_relative_files_lie_beside_the_configuration(folder):
    files = {"client__tls__ca": "tls/ca.pem", "client__tls__certificate": str(folder / "tls/cluster.pem")}
    settings = settings_of(**files, client__tls__key="tls/cluster.key")
    names = settings.tls_ca, settings.tls_certificate, settings.tls_key
    assert names == tuple(str(folder / "tls" / name) for name in ("ca.pem", "cluster.pem", "cluster.key"))


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ({"quorum": "a:b"}, "'a:b' is not a server of ZooKeeper"),
        ({"client__tls__ca": "missing.pem"}, r"missing\.pem\) cannot be used"),
        ({"client__tls__certificate": "tls/cluster.pem"}, r"tls\.ca is not set"),
        ({"client__tls__ca": "tls/ca.pem", "client__tls__key": "tls/cluster.key"}, "both or not at all"),
    ],
)
def test_what_does_not_fit_is_said_at_the_start(folder, texts, words):
    with pytest.raises(ConfigurationError, match=words):
        settings_of(**texts)


def test_a_key_that_others_may_read_is_refused(folder):
    (folder / "tls/cluster.key").chmod(0o644)
    files = {"client__tls__ca": "tls/ca.pem", "client__tls__certificate": "tls/cluster.pem"}
    with pytest.raises(ConfigurationError, match="chmod 600"):
        settings_of(**files, client__tls__key="tls/cluster.key")

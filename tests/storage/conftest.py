"""The store that tests of this folder read from."""

import pytest

from engine.storage.store_client import use_store_settings
from tests.storage.moto_server import running


@pytest.fixture(scope="session")
def server():
    """A server of S3 for all tests of this folder."""
    with running("data") as store:
        yield store


@pytest.fixture
def store(server):
    """The server; this process has its settings."""
    use_store_settings({key: str(value).lower() if value is True else value for key, value in server.settings.items()})
    yield server
    use_store_settings({})

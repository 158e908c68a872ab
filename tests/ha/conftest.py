"""A ZooKeeper server for the tests of the room."""

import pytest

from tests.ha.quorum import Quorum


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """One ZooKeeper server, where a quorum is not what is tested."""
    made = Quorum(tmp_path_factory.mktemp("server"), 1)
    made.start()
    yield made
    made.stop()

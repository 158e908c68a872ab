"""The end of kazoo's client is waited for so long and no longer."""

import threading
import time
from collections import deque

import pytest
from kazoo.protocol.serialization import CloseInstance

from ha import zookeeper_close
from ha.zookeeper_close import close_client
from tests.ha.candidate import settings_of
from tests.ha.leading import Leading, zookeeper
from tests.ha.quorum import needs_quorum, until


class Client:
    """As kazoo's: ``stop`` waits for a thread that has to take an entry from a queue; so many entries get lost."""

    def __init__(self, lost):
        self.lost = lost
        self._queue = self
        self._connection = self
        self._write_sock = self
        self.ended = threading.Event()
        self.is_closed = False

    def append(self, entry):
        assert entry == (CloseInstance, None)
        if self.lost == 0:
            self.ended.set()
        self.lost -= 1

    def send(self, data):
        return len(data)

    def stop(self):
        self.append((CloseInstance, None))
        self.ended.wait()

    def close(self):
        self.is_closed = True


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    monkeypatch.setattr(zookeeper_close, "_AGAIN_S", 0.05)


@pytest.mark.parametrize("lost", [0, 1, 3])
def test_an_entry_that_got_lost_is_made_again(lost):
    client = Client(lost)
    assert close_client(client, 30.0) and client.is_closed


def test_a_client_that_does_not_end_is_left_behind(caplog):
    client = Client(1 << 30)
    began_s = time.monotonic()
    assert not close_client(client, 0.3)
    assert time.monotonic() - began_s < 20 and not client.is_closed
    assert "does not end within 0.3 s and is left behind" in caplog.text
    client.ended.set()
    until(lambda: client.is_closed, "its end")


@needs_quorum
@pytest.mark.processes
def test_a_session_ends_although_kazoo_has_lost_the_request(server):
    class Losing(deque):
        """As a failed authentication leaves the queue, which comes between."""

        lost = 0

        def append(self, entry):
            if entry[0] is CloseInstance and not self.lost:
                self.lost += 1
                return
            super().append(entry)

    leading = Leading(zookeeper(settings_of(server.hosts, "lost", session_timeout_s=6.0)), "0").lead()
    client = leading.services.session._client
    queue = client._queue = Losing(client._queue)
    routine = client._connection._connection_routine
    leading.close()
    assert queue.lost == 1 and not routine.is_alive()

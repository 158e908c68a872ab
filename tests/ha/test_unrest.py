"""Many candidates, and connections that come and go: leadership stays where it is, and nobody runs for nothing."""

import os
import threading
import time
import uuid

import pytest

from ha.session_end import SessionHandle, end_session
from tests.ha.candidate import settings_of
from tests.ha.leading import Leading, zookeeper
from tests.ha.proxy import Proxy
from tests.ha.quorum import WAIT_S, needs_quorum, until

pytestmark = [needs_quorum, pytest.mark.processes]

CANDIDATES = 50
PAUSE_S = 0.2
FLAPPING_S = 60.0 if os.environ.get("CHAOS") in ("all", "full") else 5.0


@pytest.fixture
def closing():
    things = []
    yield lambda thing: things.append(thing) or thing
    for thing in reversed(things):
        thing.close()


def fired(line):
    return [leading.services.session.watches_fired for leading in line]


def test_of_fifty_candidates_one_hears_that_the_leader_was_killed(server, closing):
    settings = settings_of(server.hosts, uuid.uuid4().hex, session_timeout_s=30.0)
    line = [closing(Leading(zookeeper(settings), "0").lead())]
    for number in range(1, CANDIDATES):
        line.append(closing(Leading(zookeeper(settings), str(number)).start()))
        # "" until it has seen itself in the line; its watch is there when a later request of its session is answered.
        until(lambda last=line[-1]: last.election._path, "its place")
    line[-1].store.names()
    for killed, following in ((0, 1), (1, 2), (2, 3)):
        others = [leading for number, leading in enumerate(line) if number != killed]
        before = fired(others)
        session = line[killed].services.session
        handle = SessionHandle(settings.hosts, *session._client.client_id, settings.session_timeout_s)
        assert end_session(handle, WAIT_S)
        assert line[following].granted.wait(WAIT_S)
        for leading in others:
            leading.store.names()  # whatever was to come has come
        changed = [now - then for now, then in zip(fired(others), before, strict=True)]
        assert sum(changed) == 1 and changed[others.index(line[following])] == 1
        until(lambda gone=line[killed]: gone.calls[1:] == ["revoked"], "that it knows")
    epochs = [leading.calls[0] for leading in line[:4]]
    assert epochs == sorted(set(epochs))
    assert all(leading.calls == [] for leading in line[4:])
    assert all(leading.errors == [] for leading in line)


def flap(proxy, ended):
    while not ended.wait(PAUSE_S):
        proxy.cut()
        ended.wait(PAUSE_S)
        proxy.heal()


def test_a_connection_that_comes_and_goes_moves_leadership_once_at_most_and_takes_little_time(server, closing):
    proxy = closing(Proxy(server.port))
    name = uuid.uuid4().hex
    leader = closing(Leading(zookeeper(settings_of(proxy.hosts, name, session_timeout_s=6.0)), "leader").lead())
    standby = closing(Leading(zookeeper(settings_of(server.hosts, name, session_timeout_s=6.0)), "standby").start())
    until(lambda: standby.election._path, "its place")
    ended = threading.Event()
    flapping = threading.Thread(target=flap, args=(proxy, ended))
    processor_s, began, connections = time.process_time(), time.monotonic(), proxy.connections
    flapping.start()
    time.sleep(FLAPPING_S)
    # A busy machine takes longer to come back.
    until(lambda: proxy.connections > connections + 3, "that it went and came")
    ended.set()
    flapping.join()
    processor_s, flapped_s = time.process_time() - processor_s, time.monotonic() - began
    proxy.heal()
    grants = [call for call in leader.calls + standby.calls if call != "revoked"]
    assert len(grants) <= 2, (leader.calls, standby.calls)
    assert processor_s < flapped_s / 2
    both = (leader, standby)
    until(lambda: any(each.election.has_leadership(each.epoch) for each in both), "a leader")
    leads = next(each for each in both if each.election.has_leadership(each.epoch))
    assert leads.store.create(leads.epoch, "0a", b"")
    assert leads.epoch == max(grants)

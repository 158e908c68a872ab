"""Rules of the election that no order of real answers shows: whose node counts, and which answers are too late."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ha.zookeeper_election import ZooKeeperElection

OWN, FORMER = 5, 4


class ScriptedSession:
    """A session whose answers the test gives, one by one."""

    def __init__(self):
        self.settings = SimpleNamespace(latch_folder="/c/latch", root="/c", information_path="/c/leader")
        self.session_id, self.acl, self.is_connected = OWN, None, True
        #: request by name, with its arguments, and the functions that take the answer
        self.asked = []

    def ask(self, request, done, failed=None):
        self.asked.append((*request(SimpleNamespace(**{name: _named(name) for name in _REQUESTS})), done, failed))

    def next(self, name):
        """Return the function that takes the answer to the first request, which has this name."""
        asked, _, done, _ = self.asked.pop(0)
        assert asked == name
        return done

    def is_alive(self):
        return True

    def check_limits(self):
        pass

    def watch(self, action):
        return action

    def attach(self, driver):
        driver.connected()


_REQUESTS = ("sync_async", "get_children_async", "create_async", "exists_async", "delete_async")


def _named(name):
    return lambda *arguments, **_: (name, arguments)


@pytest.fixture
def lined_up():
    """A contender that has asked for the stat of its node, the first in the line."""
    session, granted = ScriptedSession(), []
    election = ZooKeeperElection(session)
    election.start(SimpleNamespace(grant_leadership=lambda epoch, _: granted.append(epoch)))
    session.next("sync_async")(None)
    session.next("get_children_async")([])
    session.next("create_async")("")
    session.next("get_children_async")([f"{election._token}-0000000007"])
    return session, election, granted


def test_the_first_of_the_line_leads_under_the_number_of_its_node(lined_up):
    session, election, granted = lined_up
    session.next("exists_async")(SimpleNamespace(ephemeralOwner=OWN, czxid=41))
    election.check()
    assert granted == [41] and election.has_leadership(41)


def test_a_node_of_a_former_session_does_not_lead(lined_up):
    session, election, granted = lined_up
    former = election._token
    session.next("exists_async")(SimpleNamespace(ephemeralOwner=FORMER, czxid=41))
    election.check()
    assert granted == []
    session.next("get_children_async")([f"{former}-0000000007"])
    assert [name for name, *_ in session.asked] == ["delete_async", "create_async"]
    assert election._token != former


def test_answers_from_before_a_new_connection_are_too_late(lined_up):
    session, election, granted = lined_up
    late = session.next("exists_async")
    election.connected()
    late(SimpleNamespace(ephemeralOwner=OWN, czxid=41))
    election.check()
    assert granted == [] and [name for name, *_ in session.asked] == ["sync_async"]

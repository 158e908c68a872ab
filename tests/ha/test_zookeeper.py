"""Elections over a real quorum of three servers: processes are killed and stopped, servers too."""

import contextlib
import dataclasses
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
import uuid

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NodeExistsError, NoNodeError, NotEmptyError
from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE

from ha.information import LeaderInformation
from ha.services import create_ha_services
from ha.zookeeper_record import NODE_MAX_BYTES, decode_leader, encode_leader
from tests.ha.candidate import SESSION_S, settings_of
from tests.ha.quorum import ROOT, Quorum, needs_quorum, until

pytestmark = pytest.mark.processes

#: what a loaded machine needs for a grant; without load it is within 0.3 s
MARGIN_S = 10.0


@pytest.fixture(scope="module")
def quorum(tmp_path_factory):
    made = Quorum(tmp_path_factory.mktemp("quorum"), 3)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def settings(quorum):
    """Settings of a cluster of its own; sessions outlive whatever a loaded machine does to a test."""
    return settings_of(quorum.hosts, uuid.uuid4().hex, session_timeout_s=20.0)


class Contender:
    """Leads in this process."""

    def __init__(self, settings, name="here"):
        self.name, self.calls, self.errors = name, [], []
        self.services = create_ha_services("ZOOKEEPER", zookeeper=settings)
        self.election = self.services.election()
        self.election.start(self)

    def grant_leadership(self, epoch, session):
        self.calls.append(epoch)
        self.election.confirm(LeaderInformation(epoch, session, self.name))

    def revoke_leadership(self):
        self.calls.append("revoked")

    def handle_error(self, error):
        self.errors.append(error)

    @property
    def leads(self):
        return bool(self.calls) and self.calls[-1] != "revoked" and self.election.has_leadership(self.calls[-1])


class Listener:
    """Hears who leads, in this process."""

    def __init__(self, settings):
        self.heard = []
        self.services = create_ha_services("ZOOKEEPER", zookeeper=settings)
        self.retrieval = self.services.retrieval()
        self.retrieval.start(self)

    def notify_leader(self, information):
        self.heard.append(information)

    @property
    def names(self):
        return [information.address if information else None for information in self.heard]


class Process:
    """Wants to lead, in a process of its own."""

    def __init__(self, quorum, settings, name):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.ha.candidate", quorum.hosts, settings.cluster_id, name],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.said = []
        self.reader = threading.Thread(target=lambda: self.said.extend(iter(self.process.stdout.readline, "")))
        self.reader.start()

    def times(self, word):
        """Return (time, number) of what was said with that word."""
        lines = [line.split() for line in tuple(self.said)]
        return [(float(line[0]), int(line[2]) if len(line) > 2 else 0) for line in lines if line[1] == word]

    def close(self):
        self.process.kill()
        self.process.wait()
        self.reader.join()
        self.process.stdout.close()


class Tool:
    """A client of its own, with the secret: what an operator's slip or a script may do."""

    def __init__(self, settings):
        self.client = KazooClient(settings.hosts, auth_data=[("digest", f"drey:{settings.key(b'digest').hex()}")])
        self.client.start()

    def content(self, path):
        """Return the content of a node, None where there is none."""
        try:
            return self.client.get(path)[0]
        except NoNodeError:
            return None

    def remove_all(self, folder):
        """Remove a folder and what is in it, as ``deleteall`` does; who makes something there meanwhile wins."""
        for path in sorted(self.below(folder), key=len, reverse=True):
            with contextlib.suppress(NoNodeError, NotEmptyError):
                self.client.delete(path)

    def below(self, folder):
        with contextlib.suppress(NoNodeError):
            for name in self.client.get_children(folder):
                yield from self.below(f"{folder}/{name}")
        yield folder

    def close(self):
        self.client.stop()
        self.client.close()


@pytest.fixture
def closing():
    things = []
    yield lambda thing: things.append(thing) or thing
    for thing in reversed(things):
        thing.close()


def nodes(settings):
    """Return all nodes of a cluster."""
    client = KazooClient(settings.hosts, auth_data=[("digest", f"drey:{settings.key(b'digest').hex()}")])
    client.start()
    try:
        client.sync("/")
        found, ahead = [], [settings.folder]
        while ahead:
            path = ahead.pop()
            with contextlib.suppress(NoNodeError):
                ahead += [f"{path}/{name}" for name in client.get_children(path)]
                found.append(path)
        return sorted(found)
    finally:
        client.stop()
        client.close()


@needs_quorum
def test_one_leads_the_next_follows_when_it_leaves_and_listeners_hear_every_leader(settings, closing):
    threads = threading.active_count()
    listener = Listener(settings)
    until(lambda: listener.names == [None], "that nobody leads")
    first = Contender(settings, "first")
    until(lambda: first.leads and listener.names[-1:] == ["first"], "the first leader")
    second = Contender(settings, "second")
    until(lambda: len([path for path in nodes(settings) if "/latch/" in path]) == 2, "the line of two")
    assert second.calls == []
    first.election.close()
    assert first.calls[1:] == ["revoked"]
    until(lambda: second.leads and listener.names[-1] == "second", "the second leader")
    assert listener.names in ([None, "first", None, "second"], [None, "first", "second"])
    assert listener.heard[-1].epoch == second.calls[0] > first.calls[0]
    second.election.close()
    until(lambda: listener.names[-1] is None, "that nobody leads")
    listener.retrieval.close()
    assert nodes(settings) == [settings.folder, settings.latch_folder]
    until(lambda: threading.active_count() <= threads, "the end of all threads")
    assert first.errors == second.errors == []


@needs_quorum
def test_a_killed_leader_is_followed_when_its_session_ends(quorum, settings, closing):
    first, second = (closing(Process(quorum, settings, name)) for name in ("first", "second"))
    until(lambda: first.times("granted") or second.times("granted"), "a leader")
    until(lambda: len([path for path in nodes(settings) if "/latch/" in path]) == 2, "the line of two")
    leader, standby = (first, second) if first.times("granted") else (second, first)
    killed_s = time.clock_gettime(time.CLOCK_BOOTTIME)
    leader.process.kill()
    until(lambda: standby.times("granted"), "the next leader")
    granted_s, epoch = standby.times("granted")[0]
    assert granted_s - killed_s < SESSION_S + MARGIN_S
    assert epoch > leader.times("granted")[0][1]


@needs_quorum
def test_a_leader_that_was_stopped_past_its_lease_does_not_act_again_under_its_epoch(quorum, settings, closing):
    first, second = (closing(Process(quorum, settings, name)) for name in ("first", "second"))
    until(lambda: first.times("acted") or second.times("acted"), "a leader")
    until(lambda: len([path for path in nodes(settings) if "/latch/" in path]) == 2, "the line of two")
    leader, standby = (first, second) if first.times("granted") else (second, first)
    os.kill(leader.process.pid, signal.SIGSTOP)
    until(lambda: standby.times("acted"), "the next leader")
    granted_s, next_epoch = standby.times("granted")[0]
    os.kill(leader.process.pid, signal.SIGCONT)
    until(lambda: leader.times("revoked"), "the end of the first leadership")
    old_epoch = leader.times("granted")[0][1]
    assert next_epoch > old_epoch
    assert [at_s for at_s, epoch in leader.times("acted") if epoch == old_epoch and at_s >= granted_s] == []
    standby.close()
    until(lambda: len(leader.times("granted")) == 2, "leadership again")
    assert leader.times("granted")[1][1] > next_epoch


@needs_quorum
def test_a_killed_leader_of_the_quorum_changes_no_leadership(quorum, settings, closing):
    contender = Contender(settings)
    standby = Contender(settings, "standby")
    listener = Listener(settings)
    try:
        until(lambda: listener.names[-1:] in (["here"], ["standby"]), "a leader")
        leader = contender if contender.leads else standby
        number = next(number for number in quorum.servers if quorum.mode(number) == "leader")
        quorum.kill(number)
        until(lambda: "leader" in [quorum.mode(other) for other in quorum.servers], "another leader of the quorum")
        assert quorum.run("zookeeper", "start", str(number)).returncode == 0
        until(lambda: all(quorum.mode(other) for other in quorum.servers), "the whole quorum")
        parts = (contender, standby, listener)
        until(lambda: all(part.services.session.is_connected for part in parts), "all connections")
        assert leader.leads
        assert len(contender.calls + standby.calls) == 1
        assert len(listener.names) <= 2
    finally:
        for closed in (contender.election, standby.election, listener.retrieval):
            closed.close()


@needs_quorum
def test_without_the_quorum_the_lease_ends_and_with_it_again_one_leads_under_a_higher_epoch(quorum, settings):
    brief = dataclasses.replace(settings, session_timeout_s=SESSION_S)
    contender = Contender(brief)
    try:
        until(lambda: contender.leads, "leadership")
        quorum.stop()
        until(lambda: contender.calls[1:] == ["revoked"], "the end of the lease")
        assert not contender.election.has_leadership(contender.calls[0])
        quorum.start()
        until(lambda: len(contender.calls) >= 3 and contender.leads, "leadership again")
        assert contender.calls[-1] > contender.calls[0]
        assert contender.errors == []
    finally:
        contender.election.close()


@needs_quorum
def test_of_twenty_candidates_one_hears_of_each_end(settings, closing):
    listener = Listener(settings)
    line = []
    for number in range(20):
        contender = Contender(settings, str(number))
        line.append(contender)
        until(lambda: len([path for path in nodes(settings) if "/latch/" in path]) == len(line), "its place")
    until(lambda: line[0].leads and listener.names[-1] == "0", "the first leader")
    before = [contender.services.session.watches_fired for contender in line]
    for leaving, following in itertools.pairwise(line[:4]):
        leaving.election.close()
        until(lambda next_=following: next_.leads and listener.names[-1] == next_.name, "the next leader")
    fired = [contender.services.session.watches_fired for contender in line]
    # The last leader heard of the end before its own, those behind it of nothing.
    assert [now - then for now, then in zip(fired, before, strict=True)][3:] == [1] + [0] * 16
    assert [name for name in listener.names if name is not None] == ["0", "1", "2", "3"]
    for contender in reversed(line):
        contender.election.close()
    until(lambda: listener.names[-1] is None, "that nobody leads")
    listener.retrieval.close()
    epochs = [contender.calls[0] for contender in line if contender.calls]
    assert epochs == sorted(set(epochs))
    assert nodes(settings) == [settings.folder, settings.latch_folder]


@needs_quorum
def test_a_node_that_is_taken_away_is_a_leadership_lost_and_the_next_epoch_is_higher(settings):
    contender = Contender(settings)
    try:
        until(lambda: contender.leads, "leadership")
        client = KazooClient(settings.hosts, auth_data=[("digest", f"drey:{settings.key(b'digest').hex()}")])
        client.start()
        client.delete(next(path for path in nodes(settings) if "/latch/" in path))
        until(lambda: len(contender.calls) == 3 and contender.leads, "leadership again")
        client.stop()
        client.close()
        assert contender.calls[1] == "revoked"
        assert contender.calls[2] > contender.calls[0]
    finally:
        contender.election.close()


@needs_quorum
@pytest.mark.parametrize("damage", ["deleted", "deleted twice", "other content", "of another session"])
def test_a_leader_whose_address_is_removed_or_changed_publishes_it_again_and_leads_on(settings, closing, damage):
    contender, path = Contender(settings), settings.information_path
    closing(contender.election)
    listener = Listener(settings)
    closing(listener.retrieval)
    until(lambda: contender.leads and listener.names[-1:] == ["here"], "leadership")
    tool = closing(Tool(settings))
    true_content = tool.content(path)
    for _ in range(2 if damage == "deleted twice" else 1):
        if damage == "other content":
            tool.client.set(path, b"rubbish")
        else:
            tool.client.delete(path)
        if damage == "of another session":
            with contextlib.suppress(NodeExistsError):  # the leader was quicker
                tool.client.create(path, b"rubbish", acl=CREATOR_ALL_ACL, ephemeral=True)
        until(lambda: tool.content(path) == true_content, "the address")
    until(lambda: listener.names[-1:] == ["here"], "that it is found")
    assert contender.calls == contender.calls[:1] and contender.leads and contender.errors == []


@needs_quorum
@pytest.mark.parametrize("depth", ["latch", "leader", "cluster"])
def test_a_leader_whose_folders_are_removed_leads_again_under_a_higher_epoch_and_is_found(settings, closing, depth):
    contender, listener = Contender(settings), Listener(settings)
    closing(contender.election)
    closing(listener.retrieval)
    until(lambda: contender.leads and listener.names[-1:] == ["here"], "leadership")
    tool = closing(Tool(settings))
    folder = {"latch": settings.latch_folder, "leader": settings.folder}.get(depth, settings.folder.rpartition("/")[0])
    tool.remove_all(folder)
    until(lambda: len(contender.calls) >= 3 and contender.leads, "leadership again")
    assert contender.calls[1] == "revoked" and contender.calls[-1] > contender.calls[0]
    until(lambda: listener.heard[-1] is not None and listener.heard[-1].epoch == contender.calls[-1], "its address")
    assert contender.errors == []


@needs_quorum
def test_candidates_outlast_somebody_who_removes_their_folders_again_and_again(settings, closing):
    line = [Contender(settings, str(number)) for number in range(3)]
    for contender in line:
        closing(contender.election)
    until(lambda: any(contender.leads for contender in line), "leadership")
    tool, cluster = closing(Tool(settings)), settings.folder.rpartition("/")[0]
    for _ in range(60):
        tool.remove_all(cluster)
    until(lambda: any(contender.leads for contender in line), "leadership again")
    until(lambda: tool.content(settings.information_path), "its address")
    assert [contender.errors for contender in line] == [[]] * 3


@needs_quorum
def test_a_candidate_whose_node_is_taken_away_leads_when_the_leader_has_left(settings, closing):
    first = Contender(settings, "first")
    until(lambda: first.leads, "leadership")
    second = Contender(settings, "second")
    closing(second.election)
    until(lambda: len([path for path in nodes(settings) if "/latch/" in path]) == 2, "its place")
    tool = closing(Tool(settings))
    tool.client.delete(max((path for path in nodes(settings) if "/latch/" in path), key=lambda path: path[-10:]))
    first.election.close()
    until(lambda: second.leads, "the next leader")
    assert second.errors == []


@needs_quorum
def test_a_process_with_another_secret_is_told_and_neither_leads_nor_is_believed(settings):
    contender = Contender(settings)
    until(lambda: contender.leads, "leadership")
    others = dataclasses.replace(settings, secret=b"the secret of another cluster")
    stranger = Contender(others)
    until(lambda: stranger.errors, "the refusal")
    assert isinstance(stranger.errors[0], PermissionError)
    assert "another cluster secret" in str(stranger.errors[0])
    assert stranger.calls == []
    listener = Listener(others)
    until(lambda: listener.retrieval.trouble, "the refusal of the one that only looks")
    assert "another cluster secret" in listener.retrieval.trouble and not any(listener.heard)
    listener.retrieval.close()
    stranger.election.close()
    contender.election.close()


@needs_quorum
def test_a_record_without_the_secret_leads_nobody_astray(settings):
    open_settings = dataclasses.replace(settings, is_private=False)
    forged = LeaderInformation(1, uuid.uuid4(), "evil:1")
    client = KazooClient(settings.hosts)
    client.start()
    content = encode_leader(forged, dataclasses.replace(open_settings, secret=b"guessed"))
    client.create(settings.information_path, content, acl=OPEN_ACL_UNSAFE, makepath=True)
    listener = Listener(open_settings)
    until(lambda: listener.heard, "the answer")
    assert listener.names == [None]
    contender = Contender(open_settings)
    until(lambda: listener.names == [None, "here"], "the true leader")
    contender.election.close()
    listener.retrieval.close()
    client.stop()
    client.close()


def test_without_a_quorum_the_contender_is_told_what_does_not_answer():
    contender = Contender(settings_of("127.0.0.1:1", "none", connection_timeout_s=0.3))
    until(lambda: contender.errors, "the error")
    assert "no ZooKeeper of 127.0.0.1:1 has answered for 0.3 s" in str(contender.errors[0])
    assert contender.calls == []
    contender.election.close()


def test_a_record_is_read_by_holders_of_the_secret_in_the_same_cluster_only():
    settings = settings_of("nowhere", "a")
    information = LeaderInformation(7, uuid.uuid4(), "host:1")
    content = encode_leader(information, settings)
    assert decode_leader(content, settings) == information
    others = (settings_of("nowhere", "b"), dataclasses.replace(settings, secret=b"x"))
    for other, text in [(other, content) for other in others] + [
        (settings, content.replace(b'"epoch": 7', b'"epoch": 8'))
    ]:
        with pytest.raises(ValueError, match="another cluster secret"):
            decode_leader(text, other)
    for broken in (b"", b"{}", b"[1]", b"\xff", b'{"record": 1, "mac": 2}'):
        with pytest.raises(ValueError, match=r"leader's record|another cluster secret"):
            decode_leader(broken, settings)
    with pytest.raises(ValueError, match="more than"):
        encode_leader(information._replace(address="x" * NODE_MAX_BYTES), settings)


def test_the_secret_is_in_no_text():
    assert "secret for tests" not in repr(settings_of("h", "c"))

"""Contents in a real ZooKeeper: leaders that were stopped, answers that were lost, nodes that others made."""

import dataclasses
import signal
import subprocess
import sys
import threading
import uuid

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError
from kazoo.security import OPEN_ACL_UNSAFE, make_digest_acl

from ha.interfaces import ForeignStateError, StaleEpochError, StateUnavailableError, StoredState
from tests.ha.candidate import SESSION_S, settings_of
from tests.ha.leading import Leading, zookeeper
from tests.ha.proxy import Proxy
from tests.ha.quorum import ROOT, needs_quorum, until

pytestmark = [needs_quorum, pytest.mark.processes]


@pytest.fixture
def closing():
    things = []
    yield lambda thing: things.append(thing) or thing
    for thing in reversed(things):
        thing.close()


@pytest.fixture
def settings(server):
    return settings_of(server.hosts, uuid.uuid4().hex, session_timeout_s=20.0)


@pytest.fixture
def proxy(server, closing):
    return closing(Proxy(server.port))


class Tool:
    """A client of its own, with the secret or without."""

    def __init__(self, settings, secret=True):
        auth = [("digest", f"drey:{settings.key(b'digest').hex()}")] if secret else []
        self.client = KazooClient(settings.hosts, auth_data=auth)
        self.client.start()

    def close(self):
        self.client.stop()
        self.client.close()


def test_the_next_leader_reads_what_the_first_wrote_and_the_first_changes_nothing_more(settings, closing):
    first = closing(Leading(zookeeper(settings)).lead())
    assert first.store.create(first.epoch, "0a", b"of the first")
    second = closing(Leading(zookeeper(settings)).start())
    with pytest.raises(StaleEpochError):
        second.store.create(first.epoch, "0b", b"")
    old_epoch = first.epoch
    tool = closing(Tool(settings)).client
    # ZooKeeper knows that the first leads no more before the first does: its node was taken away.
    path = f"{settings.latch_folder}/{min(tool.get_children(settings.latch_folder), key=lambda name: name[-10:])}"
    first.services.session.post(first.granted.wait)  # its thread is busy
    first.granted.clear()
    tool.delete(path)
    assert second.granted.wait(30)
    assert second.store.names() == ("0a",)
    assert second.store.replace(second.epoch, "0a", b"of the second", 0)
    first.granted.set()
    for write in (
        lambda: first.store.create(old_epoch, "0c", b""),
        lambda: first.store.replace(old_epoch, "0a", b"stale", 1),
        lambda: first.store.remove(old_epoch, "0a"),
    ):
        with pytest.raises(StaleEpochError):
            write()
    assert first.store.refused_writes == 3
    assert second.store.read("0a") == StoredState(b"of the second", 1)
    assert second.store.names() == ("0a",)


def test_transactions_of_a_latch_that_is_gone_are_refused_by_zookeeper_itself(settings, closing):
    first = closing(Leading(zookeeper(settings)).lead())
    assert first.store.create(first.epoch, "0a", b"first")
    # It goes on believing in its latch, whatever it is told.
    latch, tool = first.election.latch_path(first.epoch), closing(Tool(settings)).client
    first.store._latch_of = lambda epoch: latch
    tool.delete(latch)
    for write in (
        lambda: first.store.create(first.epoch, "0b", b""),
        lambda: first.store.replace(first.epoch, "0a", b"stale", 0),
        lambda: first.store.remove(first.epoch, "0a"),
    ):
        with pytest.raises(StaleEpochError):
            write()
    assert first.store.refused_writes == 3
    assert first.store.names() == ("0a",) and first.store.read("0a") == StoredState(b"first", 0)


def test_a_stopped_process_writes_nothing_when_it_wakes_after_its_session(settings, closing):
    words = [sys.executable, "-m", "tests.ha.writer", settings.hosts, settings.cluster_id]
    stopped = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    said = []
    reader = threading.Thread(target=lambda: said.extend(iter(stopped.stdout.readline, "")))
    reader.start()
    try:
        until(lambda: "wrote 20\n" in said, "writes")
        stopped.send_signal(signal.SIGSTOP)
        brief = dataclasses.replace(settings, session_timeout_s=SESSION_S)
        second = closing(Leading(zookeeper(brief)).lead())
        assert second.store.remove(second.epoch, "0a") is None
        assert second.store.create(second.epoch, "0a", b"of the second")
        stopped.send_signal(signal.SIGCONT)
        until(lambda: any(line.startswith("refused") for line in said), "the refusal")
        assert second.store.read("0a") == StoredState(b"of the second", 0)
    finally:
        stopped.kill()
        stopped.wait()
        reader.join()
        stopped.stdout.close()


@pytest.mark.parametrize("what", ["request", "answer"])
def test_a_write_whose_answer_is_lost_is_done_once(settings, proxy, closing, what):
    leader = closing(Leading(zookeeper(dataclasses.replace(settings, hosts=proxy.hosts))).lead())
    store, epoch = leader.store, leader.epoch
    until(lambda: store.create(epoch, "ff", b""), "the folder")
    for version in range(4):
        name = f"{version:02x}"
        proxy.lose(what)
        assert store.create(epoch, name, b"once")
        assert store.read(name) == StoredState(b"once", 0)
        proxy.lose(what)
        assert store.replace(epoch, "ff", b"changed", version)
        assert store.read("ff") == StoredState(b"changed", version + 1)
        proxy.lose(what)
        assert not store.replace(epoch, "ff", b"other", 77)
        proxy.lose(what)
        assert not store.create(epoch, "ff", b"other")
        proxy.lose(what)
        store.remove(epoch, name)
        assert store.names() == ("ff",)
    assert proxy.lost == 20
    assert store.refused_writes == 0
    assert leader.calls == [epoch] and leader.errors == []


def test_an_answer_that_is_lost_with_the_leadership_is_not_a_success_of_another(settings, proxy, closing):
    leader = closing(Leading(zookeeper(dataclasses.replace(settings, hosts=proxy.hosts))).lead())
    tool = closing(Tool(settings)).client
    store, latch = leader.store, leader.election.latch_path(leader.epoch)
    assert store.create(leader.epoch, "0a", b"first")
    store._latch_of = lambda epoch: latch
    # The transaction does not arrive, and its latch is gone before the next attempt.
    proxy.lose("request")
    taking = threading.Thread(target=lambda: (until(lambda: proxy.lost == 1), tool.delete(latch)))
    taking.start()
    with pytest.raises(StaleEpochError):
        store.replace(leader.epoch, "0a", b"second", 0)
    taking.join()
    assert tool.get(f"{settings.jobs_folder}/0a")[1].version == 0


def test_without_an_answer_a_call_ends_in_time_and_with_the_connection_the_next_is_answered(settings, proxy, closing):
    brief = dataclasses.replace(settings, hosts=proxy.hosts, session_timeout_s=2.0)
    leader = closing(Leading(zookeeper(brief)).lead())
    assert leader.store.create(leader.epoch, "0a", b"first")
    epoch = leader.epoch
    leader.granted.clear()
    proxy.cut()
    with pytest.raises(StateUnavailableError, match="has not answered"):
        leader.store.read("0a")
    assert leader.revoked.wait(30)
    with pytest.raises(StaleEpochError):
        leader.store.replace(epoch, "0a", b"second", 0)
    proxy.heal()
    assert leader.granted.wait(60)
    assert leader.store.replace(leader.epoch, "0a", b"second", 0)


def test_nodes_of_others_are_refused_by_name_and_harm_no_other(settings, closing):
    leader = closing(Leading(zookeeper(settings)).lead())
    store, epoch = leader.store, leader.epoch
    for name in ("00", "0a", "0b", "0c", "0d"):
        assert store.create(epoch, name, f"content of {name}".encode())
    holder, stranger = closing(Tool(settings)).client, closing(Tool(settings, secret=False)).client
    folder = settings.jobs_folder
    # content of another name, cut content, rubbish of all kinds, a name of no content, a node with children
    holder.set(f"{folder}/0a", holder.get(f"{folder}/0b")[0])
    sealed = holder.get(f"{folder}/0c")[0]
    holder.set(f"{folder}/0c", sealed[:-1])
    holder.set(f"{folder}/0d", sealed.replace(b'"write": "', b'"write": "0'))
    rubbish = (
        b"",
        b"\n",
        b"{}",
        b"[1]\nx",
        b"\xff\xfe",
        b'{"mac": 1}\n',
        b'{"mac": "", "write": ""}\n',
        bytes(800_000),
    )
    for number, content in enumerate(rubbish):
        holder.create(f"{folder}/f{number}", content, acl=OPEN_ACL_UNSAFE)
    holder.create(f"{folder}/not a name", b"", acl=OPEN_ACL_UNSAFE)
    holder.create(f"{folder}/ee", b"", acl=OPEN_ACL_UNSAFE)
    holder.create(f"{folder}/ee/child", b"", acl=OPEN_ACL_UNSAFE)
    holder.create(f"{folder}/dd", b"", acl=[make_digest_acl("another", "secret", all=True)])
    names = store.names()
    assert len(names) == 5 + len(rubbish) + 3
    sound = {"00", "0b"}
    for name in names:
        if name in sound:
            assert store.read(name) == StoredState(f"content of {name}".encode(), 0)
        else:
            with pytest.raises(ForeignStateError, match=f"{folder}/{name}"):
                store.read(name)
    with pytest.raises(ForeignStateError, match="was made by others"):
        store.remove(epoch, "ee")
    for name in names:
        if name not in ("ee", "not a name"):
            store.remove(epoch, name)
    assert store.names() == ("ee", "not a name")
    assert leader.errors == []
    with pytest.raises(NoAuthError):
        stranger.get_children(folder)


def test_another_secret_reads_and_writes_nothing(settings, closing):
    leader = closing(Leading(zookeeper(settings)).lead())
    assert leader.store.create(leader.epoch, "0a", b"first")
    store = zookeeper(dataclasses.replace(settings, secret=b"another secret")).state_store()
    with pytest.raises(ForeignStateError, match="another cluster secret"):
        store.names()
    with pytest.raises(ForeignStateError, match="another cluster secret"):
        store.read("0a")
    with pytest.raises(StaleEpochError):
        store.remove(leader.epoch, "0a")


def test_contents_are_read_without_an_election_and_no_connection_stays(settings, closing):
    leader = closing(Leading(zookeeper(settings)).lead())
    assert leader.store.create(leader.epoch, "0a", b"first")
    services = zookeeper(settings)
    assert services.state_store().names() == ("0a",)
    assert services.state_store().read("0a") == StoredState(b"first", 0)
    assert not services.session.is_connected


def test_many_threads_write_at_once_and_each_version_has_one_writer(settings, closing):
    leader = closing(Leading(zookeeper(settings)).lead())
    store, epoch = leader.store, leader.epoch
    assert store.create(epoch, "0a", b"")
    won = []

    def work(mine):
        for version in range(10):
            while (now := store.read("0a").version) < version:
                assert now >= 0
            if store.replace(epoch, "0a", mine, version):
                won.append(version)

    threads = [threading.Thread(target=work, args=(b"%d" % number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(won) == list(range(10))


def test_without_zookeeper_a_call_says_so():
    store = zookeeper(settings_of("127.0.0.1:1", "none", connection_timeout_s=0.3)).state_store()
    with pytest.raises(StateUnavailableError, match=r"no ZooKeeper of 127\.0\.0\.1:1 has answered"):
        store.names()

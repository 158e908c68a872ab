"""What every store of contents does: the same tests for those of one process and the one over ZooKeeper."""

import uuid

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from ha.interfaces import StaleEpochError, StoredState
from ha.state_limits import CONTENT_MAX_BYTES
from tests.ha.candidate import settings_of
from tests.ha.leading import Leading, embedded, standalone, zookeeper
from tests.ha.quorum import needs_quorum

KINDS = (embedded, standalone, pytest.param(zookeeper, marks=needs_quorum))


@pytest.fixture(params=KINDS)
def leader(request):
    if request.param is zookeeper:
        server = request.getfixturevalue("server")
        services = zookeeper(settings_of(server.hosts, uuid.uuid4().hex, session_timeout_s=20.0))
    else:
        services = request.param()
    leading = Leading(services).lead()
    yield leading
    leading.close()


def test_a_content_is_read_as_it_was_written_with_a_version_that_counts_its_changes(leader):
    store, epoch = leader.store, leader.epoch
    assert store.names() == () and store.read("0a") is None
    assert store.create(epoch, "0a", b"{}")
    assert store.read("0a") == StoredState(b"{}", 0)
    assert store.replace(epoch, "0a", b"\x00\n\xff", 0)
    assert store.read("0a") == StoredState(b"\x00\n\xff", 1)
    assert store.replace(epoch, "0a", b"", 1)
    assert store.read("0a") == StoredState(b"", 2)
    assert store.create(epoch, "00", b"another")
    assert store.names() == ("00", "0a")
    store.remove(epoch, "0a")
    assert store.read("0a") is None and store.names() == ("00",)
    assert store.refused_writes == 0


def test_what_is_there_is_not_created_and_another_version_is_not_replaced(leader):
    store, epoch = leader.store, leader.epoch
    assert store.create(epoch, "0a", b"first")
    assert not store.create(epoch, "0a", b"second")
    assert not store.replace(epoch, "0a", b"second", 1)
    assert not store.replace(epoch, "0b", b"second", 0)
    assert store.read("0a") == StoredState(b"first", 0) and store.read("0b") is None
    store.remove(epoch, "0b")
    store.remove(epoch, "0a")
    store.remove(epoch, "0a")
    assert not store.replace(epoch, "0a", b"second", 0)
    assert store.create(epoch, "0a", b"third")


def test_an_epoch_that_is_not_granted_changes_nothing_and_is_counted(leader):
    store, epoch = leader.store, leader.epoch
    assert store.create(epoch, "0a", b"first")
    for other in (0, epoch - 1, epoch + 1):
        with pytest.raises(StaleEpochError, match=f"epoch {other} leads no more"):
            store.create(other, "0b", b"second")
        with pytest.raises(StaleEpochError):
            store.replace(other, "0a", b"second", 0)
        with pytest.raises(StaleEpochError):
            store.remove(other, "0a")
    assert store.refused_writes == 9
    assert store.names() == ("0a",) and store.read("0a") == StoredState(b"first", 0)


def test_names_and_sizes_that_zookeeper_cannot_hold_are_refused_before_anything_is_sent(leader):
    store, epoch = leader.store, leader.epoch
    for name in ("", "0/a", "..", "job", "0A", "a" * 65):
        with pytest.raises(ValueError, match="is not a name for a content"):
            store.create(epoch, name, b"")
        with pytest.raises(ValueError, match="is not a name for a content"):
            store.replace(epoch, name, b"", 0)
        with pytest.raises(ValueError, match="is not a name for a content"):
            store.remove(epoch, name)
    with pytest.raises(ValueError, match="has 524289 bytes, more than 524288"):
        store.create(epoch, "0a", bytes(CONTENT_MAX_BYTES + 1))
    assert store.create(epoch, "0a", bytes(CONTENT_MAX_BYTES))
    with pytest.raises(ValueError, match="more than"):
        store.replace(epoch, "0a", bytes(CONTENT_MAX_BYTES + 1), 0)
    assert store.read("0a") == StoredState(bytes(CONTENT_MAX_BYTES), 0)


def test_a_store_is_the_same_as_a_dictionary(leader):
    store, epoch = leader.store, leader.epoch
    names, contents = st.sampled_from(("0a", "0b", "ff")), st.binary(max_size=8)

    class Machine(RuleBasedStateMachine):
        def __init__(self):
            super().__init__()
            for name in store.names():
                store.remove(epoch, name)
            self.model = {}

        @rule(name=names, content=contents)
        def create(self, name, content):
            assert store.create(epoch, name, content) is (name not in self.model)
            self.model.setdefault(name, StoredState(content, 0))

        @rule(name=names, content=contents, version=st.integers(0, 3))
        def replace(self, name, content, version):
            fits = name in self.model and self.model[name].version == version
            assert store.replace(epoch, name, content, version) is fits
            if fits:
                self.model[name] = StoredState(content, version + 1)

        @rule(name=names)
        def remove(self, name):
            store.remove(epoch, name)
            self.model.pop(name, None)

        @rule(name=names, content=contents, version=st.integers(0, 3))
        def write_under_an_old_epoch(self, name, content, version):
            with pytest.raises(StaleEpochError):
                store.replace(epoch - 1, name, content, version)

        @invariant()
        def it_is_the_same(self):
            assert store.names() == tuple(sorted(self.model))
            for name, stored in self.model.items():
                assert store.read(name) == stored

    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=15, stateful_step_count=15, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )

"""Leader election within one process: one leader at a time, under epochs that grow."""

from __future__ import annotations

import uuid

import pytest

from ha.embedded import EmbeddedLeaderService
from ha.information import LeaderInformation
from ha.services import create_ha_services


class Contender:
    def __init__(self, election=None) -> None:
        self.calls: list[object] = []
        self.election = election

    def grant_leadership(self, epoch, session) -> None:
        self.calls.append(epoch)
        if self.election is not None:
            self.election.confirm(LeaderInformation(epoch, session, f"address-{epoch}"))

    def revoke_leadership(self) -> None:
        self.calls.append("revoked")

    def handle_error(self, error) -> None:
        raise AssertionError(error)


class Listener:
    def __init__(self) -> None:
        self.heard: list[str | None] = []

    def notify_leader(self, information) -> None:
        self.heard.append(None if information is None else information.address)


def test_the_first_leads_at_once_the_next_when_it_left_and_epochs_grow():
    service = EmbeddedLeaderService()
    listener = Listener()
    service.retrieval().start(listener)
    elections = [service.election() for _ in range(3)]
    contenders = [Contender(election) for election in elections]
    for election, contender in zip(elections, contenders, strict=True):
        election.start(contender)
    assert [contender.calls for contender in contenders] == [[1], [], []]
    elections[1].close()
    elections[0].close()
    assert [contender.calls for contender in contenders] == [[1, "revoked"], [], [2]]
    assert listener.heard == [None, "address-1", None, "address-2"]
    assert elections[2].has_leadership(2) and not elections[2].has_leadership(1)
    assert not elections[0].has_leadership(1)


def test_at_most_one_leads_at_any_moment():
    service = EmbeddedLeaderService()
    leading: set[int] = set()

    class Watcher(Contender):
        def grant_leadership(self, epoch, session) -> None:
            assert not leading
            leading.add(epoch)
            self.epoch = epoch

        def revoke_leadership(self) -> None:
            leading.remove(self.epoch)

    elections = [service.election() for _ in range(5)]
    for election in elections:
        election.start(Watcher())
    for election in elections:
        election.close()
    assert not leading


def test_a_confirmation_of_an_old_epoch_is_not_heard():
    service = EmbeddedLeaderService()
    listener = Listener()
    retrieval = service.retrieval()
    retrieval.start(listener)
    old, new = service.election(), service.election()
    old.start(Contender())
    old.close()
    new.start(Contender())
    old.confirm(LeaderInformation(1, uuid.uuid4(), "stale"))
    new.confirm(LeaderInformation(1, uuid.uuid4(), "stale"))
    assert listener.heard == [None, None]
    retrieval.close()
    new.confirm(LeaderInformation(2, uuid.uuid4(), "fresh"))
    assert listener.heard == [None, None]


def test_a_standalone_leader_is_fixed_and_alone():
    services = create_ha_services("NONE", "http://host:6123", 7)
    listener, contender = Listener(), Contender()
    services.retrieval().start(listener)
    election = services.election()
    election.start(contender)
    assert contender.calls == [7] and listener.heard == ["http://host:6123"]
    assert election.has_leadership(7) and not election.has_leadership(6)
    with pytest.raises(RuntimeError, match="one contender"):
        election.start(Contender())
    election.close()
    election.close()
    assert contender.calls == [7, "revoked"]


def test_an_unknown_type_names_those_there_are():
    with pytest.raises(ValueError, match="'mesos' is not one of NONE, ZOOKEEPER, embedded"):
        create_ha_services("mesos")

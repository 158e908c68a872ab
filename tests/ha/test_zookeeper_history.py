"""The checker of histories finds what it is there to find, and ZooKeeper's logs are read as they were written."""

import json

import pytest
from kazoo.client import KazooClient

from tests.ha.quorum import Quorum, needs_quorum
from tests.ha.zookeeper_history import Change, Transaction, check_history, read_history

FOLDER = "/drey/c"
LATCH, JOB, RECORD = f"{FOLDER}/leader/latch/", f"{FOLDER}/jobs/j", f"{FOLDER}/leader/connection_info"


def latch(zxid, session, number):
    return Transaction(zxid, session, (Change("create", f"{LATCH}t{session}-{number:010}", b"", True),))


def write(zxid, session, epoch, kind="set", **parts):
    handle = {"epoch": epoch, "decision": None, "result": ""} | parts
    return Transaction(zxid, session, (Change(kind, JOB, b"{}\n" + json.dumps(handle).encode()),))


def end(zxid, session):
    return Transaction(zxid, session, (), ends_session=True)


GOOD = [
    latch(1, 100, 0),
    latch(2, 200, 1),
    Transaction(3, 100, (Change("create", RECORD, b"", True),)),
    write(4, 100, 1, "create"),
    write(5, 100, 1, decision="d"),
    end(6, 100),
    Transaction(7, 200, (Change("create", RECORD, b"", True),)),
    write(8, 200, 2, decision="d"),
    write(9, 200, 2, decision="d", result="FINISHED"),
    Transaction(10, 200, (Change("delete", JOB),)),
]


def test_a_history_that_keeps_every_promise_has_no_faults():
    assert check_history(GOOD, FOLDER) == []


@pytest.mark.parametrize(
    ("place", "broken", "fault"),
    [
        pytest.param(7, write(8, 100, 1, decision="d"), "written under epoch 1, 2 leads", id="a stale leader writes"),
        pytest.param(3, write(4, 200, 2, "create"), "written under epoch 2, 1 leads", id="the second in line writes"),
        pytest.param(8, write(9, 200, 1, decision="d"), "epoch 1 after 2", id="an epoch falls"),
        pytest.param(7, write(8, 200, 2, decision="e"), "the decision was d", id="a decision changes"),
        pytest.param(7, write(8, 200, 2), "the decision was d", id="a decision is taken back"),
        pytest.param(2, Transaction(3, 200, (Change("create", RECORD),)), "does not lead", id="another's record"),
        pytest.param(9, Transaction(10, 100, (Change("delete", JOB),)), "does not lead", id="a stale leader deletes"),
        pytest.param(3, Transaction(4, 100, (Change("create", JOB, b"rubbish"),)), "not a handle", id="rubbish"),
        pytest.param(8, write(9, 300, 9, decision="d"), "written under epoch 9", id="nobody that was in the line"),
    ],
)
def test_a_broken_history_is_found_out(place, broken, fault):
    history = [*GOOD[:place], broken, *GOOD[place + 1 :]]
    assert any(fault in found for found in check_history(history, FOLDER))


def test_a_result_that_changes_is_found_out():
    history = [*GOOD[:9], write(10, 200, 2, decision="d", result="FAILED")]
    assert any("the result was FINISHED" in found for found in check_history(history, FOLDER))


@needs_quorum
def test_the_logs_of_a_server_are_read_as_they_were_written(tmp_path):
    quorum = Quorum(tmp_path, 1)
    quorum.start()
    try:
        client = KazooClient(quorum.hosts)
        client.start()
        session = client.client_id[0]
        client.create("/a", b"first")
        made = client.create("/a/e-", b"second", ephemeral=True, sequence=True)
        transaction = client.transaction()
        transaction.check(made, 0)
        transaction.set_data("/a", b"third")
        transaction.commit()
        refused = client.transaction()
        refused.check(made, 5)
        refused.set_data("/a", b"never")
        refused.commit()
        stat = client.exists(made)
        client.stop()
        client.close()
    finally:
        quorum.stop()
    history = [each for each in read_history(tmp_path / "data") if each.session == session]
    changes = [change for each in history for change in each.changes]
    assert changes == [
        Change("create", "/a", b"first"),
        Change("create", made, b"second", True),
        Change("set", "/a", b"third"),
    ]
    assert next(each.zxid for each in history if each.changes and each.changes[0].path == made) == stat.czxid
    assert history[-1].ends_session

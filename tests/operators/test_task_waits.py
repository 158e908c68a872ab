"""A task says what it waits for; one whose function is at work in a worker does not wait."""

from types import SimpleNamespace

import pytest

from engine.graph.task_wait import TaskWait, WaitKind
from engine.operators.task_waits import wait_of

DESCRIPTOR = SimpleNamespace(chain=(SimpleNamespace(name="join"), SimpleNamespace(name="map")))
IDLE, AT_WORK = SimpleNamespace(is_at_work=False), SimpleNamespace(is_at_work=True)


def channel(partition, subpartition):
    return SimpleNamespace(partition=partition, subpartition_index=subpartition)


def task_input(*unread, is_waiting=True):
    return SimpleNamespace(is_waiting=is_waiting, unread=list(unread))


def partition(*queued, is_waiting=True):
    full = [index for index, count in enumerate(queued) if count]
    return SimpleNamespace(id="own", is_waiting=is_waiting, full_subpartitions=lambda: full)


@pytest.mark.parametrize(
    ("inputs", "partitions", "operators", "waits_for", "expected"),
    [
        ([], [], [], "", None),
        ([task_input(channel("a", 1), is_waiting=False)], [partition(2, is_waiting=False)], [IDLE], "", None),
        ([task_input(channel("a", 1))], [], [IDLE], "", TaskWait(WaitKind.INPUT, "join", ("a",), (1,))),
        (
            [task_input(*(channel("a", index) for index in range(5)))],
            [],
            [],
            "",
            TaskWait(WaitKind.INPUT, "join", ("a",) * 3, (0, 1, 2), more=2),
        ),
        ([], [partition(0, 3, 0, 1)], [], "", TaskWait(WaitKind.ROOM, "map", ("own",), (1, 3))),
        ([], [partition(1, 1, 1, 1, 1)], [], "", TaskWait(WaitKind.ROOM, "map", ("own",), (0, 1, 2), more=2)),
        ([task_input(channel("a", 1))], [partition(1)], [IDLE, AT_WORK], "", None),
        ([task_input(channel("a", 1))], [], [], "the table", TaskWait(WaitKind.TASK, "join", text="the table")),
    ],
)
def test_a_task_waits_for_input_or_for_room_unless_a_function_is_at_work(
    inputs, partitions, operators, waits_for, expected
):
    assert wait_of(DESCRIPTOR, inputs, partitions, operators, waits_for) == expected
